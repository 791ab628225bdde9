//! The lists of the last run, for a server that is started on first use.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;
use tidings_mirror::List;
use tidings_server::Raw;

use crate::pin::write;
use crate::publish::{Kind, Original, Stock};

/// The items of each list, as they were sent.
type KeptLists = BTreeMap<String, Vec<Box<RawValue>>>;

/// The stock of the last run; `None` if there is none that can be read.
pub(crate) fn load(path: &Path) -> Option<Stock> {
    let text = std::fs::read_to_string(path).ok()?;
    let lists: KeptLists = serde_json::from_str(&text).ok()?;
    Some(Stock {
        tools: items(&lists),
        prompts: items(&lists),
        resources: items(&lists),
        templates: items(&lists),
        problems: Vec::new(),
        missing: Vec::new(),
    })
}

/// Keeps a stock for the next run.
pub(crate) fn save(path: &Path, stock: &Stock) -> std::io::Result<()> {
    let mut lists = KeptLists::new();
    lists.insert(List::Tools.to_string(), texts(&stock.tools));
    lists.insert(List::Prompts.to_string(), texts(&stock.prompts));
    lists.insert(List::Resources.to_string(), texts(&stock.resources));
    lists.insert(List::Templates.to_string(), texts(&stock.templates));
    write(path, &lists)
}

fn texts<T>(originals: &[Original<T>]) -> Vec<Box<RawValue>> {
    let texts = originals.iter().map(|original| original.raw.to_string());
    texts.filter_map(|text| RawValue::from_string(text).ok()).collect()
}

fn items<T: Kind>(lists: &KeptLists) -> Vec<Original<T>> {
    let texts = lists.get(T::LIST.as_str()).map_or(&[][..], Vec::as_slice);
    let items = texts.iter().filter_map(|text| {
        let raw: Raw<T> = Raw::parse(text.get()).ok()?;
        let key: String = serde_json::from_str(raw.get(T::FIELD)?).ok()?;
        Some(Original { key: key.into(), raw })
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_kept_as_they_were_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lists.json");
        assert!(load(&path).is_none());
        let mut stock = Stock::default();
        let text = r#"{"z":18446744073709551616,"name":"a","b":1.50}"#;
        stock.tools.push(Original { key: "a".into(), raw: Raw::parse(text).unwrap() });
        save(&path, &stock).unwrap();
        let loaded = load(&path).unwrap();
        assert_eq!((&*loaded.tools[0].key, loaded.tools[0].raw.as_str()), ("a", text));
        assert!(loaded.prompts.is_empty());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(load(&path).is_none());
    }
}
