//! What may lie in a folder and must harm nobody.
