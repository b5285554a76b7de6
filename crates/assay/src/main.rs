//! The command `assay`.
fn main() {}
