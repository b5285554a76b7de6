//! The frame of a function: where registers, constants and special registers lie.

use std::collections::BTreeMap;

use assay_ptx::{Function, Op, Special, Ty};

use crate::code::{Kind, Slot};
use crate::liveness;
use crate::warp::{Class, SLOT};

/// Bytes at the start of every frame for results that nobody wants.
const SINK_BYTES: u32 = 2 * SLOT;

/// The width class of a type.
pub(crate) fn kind_of(ty: Ty) -> Option<Kind> {
    match ty.bits() {
        1 if ty == Ty::Pred => Some(Kind::Pred),
        8..=32 => Some(Kind::W32),
        64 => Some(Kind::W64),
        _ => None,
    }
}

/// A frame under construction.
pub(crate) struct Frame {
    /// Slot of each register.
    pub(crate) registers: Vec<Slot>,
    /// Where each register is live: first and last instruction.
    pub(crate) spans: Vec<Option<(usize, usize)>>,
    /// Some register may be read before it is written.
    pub(crate) unset: bool,
    /// The carry flag.
    pub(crate) flag: u32,
    end: u32,
    constants: BTreeMap<(Kind, u64), u32>,
    pub(crate) specials: Vec<(Special, u32, Kind)>,
    classes: BTreeMap<(u32, u64), u32>,
}

impl Frame {
    /// Packs the registers of `f`; `None` if there is one wider than 64 bits or they are too many.
    pub(crate) fn new(f: &Function) -> Option<Frame> {
        let kinds: Vec<Kind> = f.registers.iter().map(|r| kind_of(r.ty)).collect::<Option<_>>()?;
        let (spans, unset) = liveness::intervals(f);
        // Each width has slots of its own: lane k of a wide register overlaps lanes 2k and 2k + 1 of a narrow one, and
        // a fragment that is behind another must not touch what the other one's lanes hold.
        let of = |kind: Kind, units: u32| {
            let kinds = &kinds;
            move |r: usize| if kinds[r] == kind { units } else { 0 }
        };
        let (narrow, narrow_units) = liveness::assign(&spans, of(Kind::W32, 1));
        let (wide, wide_units) = liveness::assign(&spans, of(Kind::W64, 2));
        let units = narrow_units.checked_add(wide_units)?;
        // Predicates are one word each: not worth packing.
        let mut end = SINK_BYTES.checked_add(units.checked_mul(SLOT)?)?;
        let mut registers = Vec::with_capacity(kinds.len());
        for (r, kind) in kinds.iter().enumerate() {
            let at = match kind {
                Kind::Pred => {
                    end = end.checked_add(4)?;
                    end - 4
                }
                Kind::W32 => SINK_BYTES + narrow[r] * SLOT,
                Kind::W64 => SINK_BYTES + (narrow_units + wide[r]) * SLOT,
            };
            registers.push(Slot { at, kind: *kind, negated: false });
        }
        let flag = end;
        end = end.checked_add(4)?;
        (end < 1 << 28).then_some(Frame {
            registers,
            spans,
            // The carry flag is not followed.
            unset: unset || f.body.iter().any(|i| matches!(i.op, Op::Addc | Op::Subc | Op::Madc)),
            flag,
            end,
            constants: BTreeMap::new(),
            specials: Vec::new(),
            classes: BTreeMap::new(),
        })
    }

    fn take(&mut self, bytes: u32, align: u32) -> u32 {
        let at = self.end.next_multiple_of(align);
        self.end = at + bytes;
        at
    }

    fn take_register(&mut self, kind: Kind) -> u32 {
        match kind {
            Kind::Pred => self.take(4, 4),
            Kind::W32 => self.take(SLOT, SLOT),
            Kind::W64 => self.take(2 * SLOT, SLOT),
        }
    }

    /// A register that holds `bits` in every lane.
    pub(crate) fn constant(&mut self, kind: Kind, bits: u64) -> Slot {
        let at = match self.constants.get(&(kind, bits)) {
            Some(at) => *at,
            None => {
                let at = self.take_register(kind);
                self.constants.insert((kind, bits), at);
                at
            }
        };
        Slot { at, kind, negated: false }
    }

    /// The register with a special value.
    pub(crate) fn special(&mut self, s: Special, kind: Kind) -> Slot {
        let found = self.specials.iter().find(|(t, _, k)| *t == s && *k == kind);
        let at = match found {
            Some((_, at, _)) => *at,
            None => {
                let at = self.take_register(kind);
                self.specials.push((s, at, kind));
                at
            }
        };
        Slot { at, kind, negated: false }
    }

    /// A register for an intermediate value, never shared.
    pub(crate) fn temporary(&mut self, kind: Kind) -> Slot {
        Slot { at: self.take_register(kind), kind, negated: false }
    }

    /// Where the class of the register at `base` for elements of `total` bytes is kept.
    pub(crate) fn class(&mut self, base: u32, total: u64) -> u32 {
        if let Some(at) = self.classes.get(&(base, total)) {
            return *at;
        }
        let at = self.take(size_of::<Class>() as u32, 8);
        self.classes.insert((base, total), at);
        at
    }

    /// The frame's first contents.
    pub(crate) fn template(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; self.end.next_multiple_of(64) as usize];
        for ((kind, bits), at) in &self.constants {
            let at = *at as usize;
            match kind {
                Kind::Pred => {
                    let word = if *bits != 0 { u32::MAX } else { 0 };
                    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
                }
                Kind::W32 => {
                    for lane in bytes[at..at + 128].chunks_exact_mut(4) {
                        lane.copy_from_slice(&(*bits as u32).to_le_bytes());
                    }
                }
                Kind::W64 => {
                    for lane in bytes[at..at + 256].chunks_exact_mut(8) {
                        lane.copy_from_slice(&bits.to_le_bytes());
                    }
                }
            }
        }
        bytes
    }
}
