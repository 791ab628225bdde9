//! The vocabulary of Tidings: what can change, what it is called and whether it did.
//!
//! Everything here is a pure value: no I/O, no clock, no runtime and no protocol crate, so
//! a server, a client and a source can agree on these words without knowing each other.
//!
//! - [`ResourceUri`] names one resource, compared exactly as it was written.
//! - [`Template`] names a family of resources; it expands to a URI and matches one back.
//! - [`Fingerprint`] is the only answer to "did it change?".
//! - [`Diff`] is what separates two versions of one list.
//! - [`Change`] says what may have moved: a resource, all below a prefix, or a list ([`ListKind`]).
//!
//! ```
//! use tidings_core::{Fingerprint, ResourceUri, Template};
//!
//! let template = Template::parse("feed://news/{id}")?;
//! let values = template.matches("feed://news/42").expect("the URI has the template's shape");
//! assert_eq!(values["id"], "42");
//!
//! let uri = ResourceUri::parse(&template.expand(&values))?;
//! assert_eq!(uri.as_ref(), "feed://news/42");
//!
//! assert_ne!(Fingerprint::of_bytes(b"old"), Fingerprint::of_bytes(b"new"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod change;
pub mod diff;
pub mod fingerprint;
pub mod template;
pub mod uri;

pub use change::{Change, ListKind, ListKinds, Pace};
pub use diff::Diff;
pub use fingerprint::Fingerprint;
pub use template::{Template, TemplateError};
pub use uri::{ResourceUri, UriError};
