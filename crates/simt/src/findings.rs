//! What the device saw.

use serde::{Deserialize, Serialize};

/// The kind of a finding; names as in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A load outside its buffer (strict) or segment (arena), or outside shared or local memory.
    ///
    /// Misses: an index that leaves one shared or local array and lands in another of the same block or frame; an offset
    /// of 2^40 bytes or more that meets another buffer.
    OobRead,
    /// A store or atomic outside. Misses what [`FindingKind::OobRead`] does.
    OobWrite,
    /// An address that is not a multiple of the access size, vectors as a whole.
    ///
    /// Misses: nothing known; what the compiler split into smaller accesses is aligned.
    MisalignedAccess,
    /// A load of shared bytes that nothing wrote, whether or not the value matters.
    ///
    /// Misses: what is read from a copy after the first load.
    UninitReadShared,
    /// A load of global bytes that nothing wrote. Misses what [`FindingKind::UninitReadShared`] does.
    UninitReadGlobal,
    /// A load of local bytes that the thread has not written in this call.
    ///
    /// Misses: variables that the compiler keeps in registers.
    UninitReadLocal,
    /// Output bytes that no launch wrote.
    ///
    /// Misses: an element written with a value that nothing computed.
    UnwrittenOutput,
    /// Two unordered accesses to one shared byte, at least one a write.
    ///
    /// Misses: control paths that this input does not take; a reader displaced by two later, mutually unordered ones; a
    /// missing fence beside an atomic where a block barrier stands between.
    RaceShared,
    /// The same in global memory, between blocks too. Misses what [`FindingKind::RaceShared`] does.
    RaceGlobal,
    /// Threads of one block or warp met different barriers, or left before one. Once a block.
    ///
    /// Misses: different barriers on one source line, met by whole warps.
    BarrierDivergence,
    /// A warp operation whose mask does not name its caller, or whose source lane does not take part.
    ///
    /// Misses: a mask that only this input makes right.
    BadShuffleMask,
    /// Limits of a launch broken.
    ///
    /// Misses: registers, of which a GPU's block must also not need too many.
    InvalidLaunch,
    /// Nothing of a block can run any more.
    ///
    /// Misses: a spin that never ends, which exhausts the budget.
    Deadlock,
    /// A store to an input.
    ///
    /// Misses: buffers that the caller did not give the role of an input or parameter.
    InputModified,
    /// `assert` failed. Misses: what `NDEBUG` removes.
    Assert,
    /// `trap`.
    Trap,
}

impl FindingKind {
    /// Every kind, in the order of the declaration.
    pub const ALL: [FindingKind; 16] = [
        FindingKind::OobRead,
        FindingKind::OobWrite,
        FindingKind::MisalignedAccess,
        FindingKind::UninitReadShared,
        FindingKind::UninitReadGlobal,
        FindingKind::UninitReadLocal,
        FindingKind::UnwrittenOutput,
        FindingKind::RaceShared,
        FindingKind::RaceGlobal,
        FindingKind::BarrierDivergence,
        FindingKind::BadShuffleMask,
        FindingKind::InvalidLaunch,
        FindingKind::Deadlock,
        FindingKind::InputModified,
        FindingKind::Assert,
        FindingKind::Trap,
    ];

    /// The name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::OobRead => "oob_read",
            FindingKind::OobWrite => "oob_write",
            FindingKind::MisalignedAccess => "misaligned_access",
            FindingKind::UninitReadShared => "uninit_read_shared",
            FindingKind::UninitReadGlobal => "uninit_read_global",
            FindingKind::UninitReadLocal => "uninit_read_local",
            FindingKind::UnwrittenOutput => "unwritten_output",
            FindingKind::RaceShared => "race_shared",
            FindingKind::RaceGlobal => "race_global",
            FindingKind::BarrierDivergence => "barrier_divergence",
            FindingKind::BadShuffleMask => "bad_shuffle_mask",
            FindingKind::InvalidLaunch => "invalid_launch",
            FindingKind::Deadlock => "deadlock",
            FindingKind::InputModified => "input_modified",
            FindingKind::Assert => "assert",
            FindingKind::Trap => "trap",
        }
    }

    /// True for those on which a GPU, too, reports an error: the launch's results mean nothing.
    pub fn is_fault(self) -> bool {
        match self {
            FindingKind::OobRead
            | FindingKind::OobWrite
            | FindingKind::MisalignedAccess
            | FindingKind::InvalidLaunch
            | FindingKind::Deadlock
            | FindingKind::Assert
            | FindingKind::Trap => true,
            FindingKind::UninitReadShared
            | FindingKind::UninitReadGlobal
            | FindingKind::UninitReadLocal
            | FindingKind::UnwrittenOutput
            | FindingKind::RaceShared
            | FindingKind::RaceGlobal
            | FindingKind::BarrierDivergence
            | FindingKind::BadShuffleMask
            | FindingKind::InputModified => false,
        }
    }
}

impl std::fmt::Display for FindingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A thread of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// blockIdx.
    pub block: [u32; 3],
    /// threadIdx.
    pub thread: [u32; 3],
}

/// What an access did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write or reduction.
    Atomic,
}

impl AccessKind {
    /// The word for messages.
    pub fn noun(self) -> &'static str {
        match self {
            AccessKind::Read => "load",
            AccessKind::Write => "store",
            AccessKind::Atomic => "atomic",
        }
    }
}

/// The state space of a finding, as in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingSpace {
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
    /// Constant memory.
    Const,
    /// Kernel parameters.
    Param,
}

impl FindingSpace {
    /// The name as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FindingSpace::Global => "global",
            FindingSpace::Shared => "shared",
            FindingSpace::Local => "local",
            FindingSpace::Const => "const",
            FindingSpace::Param => "param",
        }
    }
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePlace {
    /// The file, as the compiler was told.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1: where the statement begins.
    pub column: Option<u32>,
    /// For inlined code the outermost place where it was inlined, in the function that the programmer wrote.
    pub inlined_at: Option<Box<SourcePlace>>,
}

/// The second party of a finding: the earlier access of a race, the other barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherAccess {
    /// What it did, where it was a memory access.
    pub access: Option<AccessKind>,
    /// Who.
    pub thread: Option<ThreadId>,
    /// Source line, from 1.
    pub line: Option<u32>,
    /// Column, from 1: where the statement begins.
    pub column: Option<u32>,
    /// Source file of `line`.
    pub file: Option<String>,
    /// For inlined code the outermost place where it was inlined.
    pub inlined_at: Option<Box<SourcePlace>>,
    /// Size in bytes, where it was a memory access.
    pub size_bytes: Option<u64>,
}

impl OtherAccess {
    /// A party of which only the place is known, if that.
    pub(crate) fn at(place: Option<SourcePlace>) -> OtherAccess {
        let (line, column, file, inlined_at) =
            place.map_or((None, None, None, None), |p| (Some(p.line), p.column, p.file, p.inlined_at));
        OtherAccess { access: None, thread: None, line, column, file, inlined_at, size_bytes: None }
    }
}

/// One thing that the device saw. Source lines come from `.loc` (`-lineinfo`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// One sentence, lower case, with actual against limit.
    pub message: String,
    /// State space.
    pub space: Option<FindingSpace>,
    /// Buffer, or shared, constant or module variable.
    pub buffer: Option<String>,
    /// First byte of the access within the buffer (negative before its start).
    pub offset_bytes: Option<i64>,
    /// Bytes accessed.
    pub size_bytes: Option<u64>,
    /// What the access did.
    pub access: Option<AccessKind>,
    /// The thread.
    pub thread: Option<ThreadId>,
    /// Source line, from 1; `None` without line information.
    pub line: Option<u32>,
    /// Column, from 1: where the statement begins.
    pub column: Option<u32>,
    /// Source file of `line`.
    pub file: Option<String>,
    /// For inlined code the outermost place where it was inlined.
    pub inlined_at: Option<Box<SourcePlace>>,
    /// The kernel.
    pub kernel: Option<String>,
    /// The other party.
    pub other: Option<OtherAccess>,
    /// How often it was seen (other threads, other offsets, same kind, line and buffer).
    pub count: u64,
}

impl Finding {
    /// A finding with a kind and a message and nothing else.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        Finding {
            kind,
            message: message.into(),
            space: None,
            buffer: None,
            offset_bytes: None,
            size_bytes: None,
            access: None,
            thread: None,
            line: None,
            column: None,
            file: None,
            inlined_at: None,
            kernel: None,
            other: None,
            count: 1,
        }
    }
}

/// A symbol as the programmer wrote the variable: `s` for `_ZZ5scaleIfEvPT_E1s`, and the symbol itself where it is no C++
/// name or ends in no plain identifier.
pub(crate) fn source_name(symbol: &str) -> String {
    let demangled = symbol
        .starts_with("_Z")
        .then(|| cpp_demangle::Symbol::new(symbol).ok().and_then(|s| s.demangle().ok()))
        .flatten();
    let Some(name) = demangled.as_deref().and_then(|d| d.rsplit("::").next()) else {
        return symbol.to_owned();
    };
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { symbol.to_owned() }
}

/// Findings collected, one per (kind, line, buffer); the rest is counted.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    list: Vec<Finding>,
}

/// Distinct findings kept per session; more are only counted into the last one of their kind.
const CAP: usize = 64;

impl Collector {
    /// Adds `finding`, or counts it where its like is there already. Gives its place in the list.
    pub(crate) fn add(&mut self, finding: Finding) -> Option<usize> {
        let same = |f: &Finding| {
            f.kind == finding.kind
                && f.line == finding.line
                && f.buffer == finding.buffer
                && f.kernel == finding.kernel
        };
        if let Some(i) = self.list.iter().position(same) {
            self.again(i);
            return Some(i);
        }
        if self.list.len() < CAP {
            self.list.push(finding);
            return Some(self.list.len() - 1);
        }
        let i = self.list.iter().rposition(|f| f.kind == finding.kind)?;
        self.again(i);
        Some(i)
    }

    /// Counts a finding once more.
    pub(crate) fn again(&mut self, i: usize) {
        if let Some(f) = self.list.get_mut(i) {
            f.count = f.count.saturating_add(1);
        }
    }

    /// Everything so far; leaves the collector empty.
    pub(crate) fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_and_display_names_agree() {
        for kind in FindingKind::ALL {
            let f = Finding::new(kind, "m");
            let mut c = Collector::default();
            c.add(f.clone());
            c.add(f);
            let list = c.take();
            assert_eq!((list.len(), list[0].count), (1, 2));
            assert_eq!(format!("{kind:>3}"), kind.name());
        }
    }

    #[test]
    fn findings_past_the_cap_are_counted() {
        let mut c = Collector::default();
        for line in 0..200 {
            let mut f = Finding::new(FindingKind::OobRead, "m");
            f.line = Some(line);
            c.add(f);
        }
        let list = c.take();
        assert_eq!(list.len(), CAP);
        assert_eq!(list.iter().map(|f| f.count).sum::<u64>(), 200);
    }
}

#[cfg(test)]
mod name_tests {
    use super::source_name;

    #[test]
    fn variables_are_called_as_in_the_source() {
        assert_eq!(source_name("_ZZ5scaleIfLi256EEvPKT_PS0_iE1s"), "s");
        assert_eq!(source_name("_ZN2u05tableE"), "table");
        assert_eq!(source_name("tile"), "tile");
        assert_eq!(source_name("_Znonsense"), "_Znonsense");
    }
}
