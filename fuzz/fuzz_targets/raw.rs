//! Raw JSON of somebody else: any text is refused or kept, and edits of it are those of its value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tidings_server::model::Resource;
use tidings_server::{Hub, Raw};

fuzz_target!(|text: &str| {
    let Ok(raw) = Raw::<Resource>::parse(text) else { return };
    assert!(!raw.as_str().contains(['\n', '\r']), "{raw}");
    assert_eq!(Raw::<Resource>::parse(raw.as_str()).expect("it was taken before"), raw);
    // Half of a surrogate pair is kept in a text, and is no value here.
    if let Ok(mut value) = serde_json::from_str::<Value>(text) {
        assert_eq!(serde_json::from_str::<Value>(raw.as_str()).expect("it is the same"), value);
        let name = raw.get("name").map(|name| serde_json::from_str::<Value>(name).expect("JSON"));
        assert_eq!(name.as_ref(), value.get("name"));
        value["name"] = "n".into();
        value["uri"] = "raw:x".into();
        value.as_object_mut().expect("an object is one").remove("size");
        let edited = raw.with("name", "n").with("uri", "raw:x").without("size");
        assert_eq!(serde_json::from_str::<Value>(edited.as_str()).expect("JSON"), value);
    }
    // Offered, it is checked and gets a fingerprint.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime can be built").block_on(async {
        let hub = Hub::new("fuzz", "1");
        let shelf = hub.source("raw").expect("it is the only source");
        drop(shelf.add(raw.clone()));
        let mut edit = shelf.transaction();
        let named = raw.with("name", "n").with("uri", "raw:x");
        edit.put(named).expect("it has a name and a URI");
        edit.commit().expect("nobody else offers anything");
    });
});
