//! The whole path through the built binary: judging, runs that are interrupted and continued, bad input, pages.
//!
//! Fixtures lie in `testdata/e2e`. Everything that is written goes into temporary folders.

mod bad_input;
mod checks;
mod compare;
mod disk;
mod exports;
mod external;
mod hostile;
mod huge;
mod judging;
mod kernel_sweeps;
mod ladder;
mod lists;
mod pages;
mod quarantine;
mod runs;
mod suites;
mod support;
