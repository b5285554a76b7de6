//! Tests of `parse_module` from outside.

mod robust;
mod samples;
mod support;
mod syntax;
