//! The vocabulary of Tidings: resources, changes, and how to tell whether something changed.
//!
//! Servers, clients and sources share these types without knowing each other. They are pure values:
//! no I/O, no clock, no runtime and no protocol crate.
//!
//! - [`ResourceUri`] names one resource, compared exactly as it was written.
//! - [`Template`] names a family of resources; it expands to a URI and matches one back.
//! - [`Fingerprint`] is the only answer to "did it change?".
//! - [`Diff`] compares two versions of one list.
//! - [`Change`] names what may have changed: a resource, all below a prefix, or a list
//!   ([`ListKind`]).
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
