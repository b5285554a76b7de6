//! Random arithmetic instructions, straight from the ISA table: what a row's forms allow is generated, so a new row
//! is covered without a word here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::OnceLock;

use assay_ptx::Op;
use assay_ptx::isa::{CLASSES, TABLE};

use crate::choices::Choices;
use crate::program::{Class, Reg};

/// Opcodes of sections that are not all arithmetic.
const MORE: &[Op] = &[Op::Cvt, Op::Prmt, Op::Vabsdiff4];
/// Opcodes that read or write the carry flag, whose value before the first of them is undefined.
const LESS: &[Op] = &[Op::Addc, Op::Subc, Op::Madc];

/// An opcode with one of its forms.
struct Candidate {
    op: Op,
    mods: &'static str,
    types: &'static str,
    shapes: &'static str,
}

fn candidates() -> &'static Vec<Vec<Candidate>> {
    static LIST: OnceLock<Vec<Vec<Candidate>>> = OnceLock::new();
    LIST.get_or_init(|| {
        let arithmetic = |section: &str| {
            ["Integer Arithmetic", "Floating-Point", "Comparison", "Logic and Shift"]
                .iter()
                .any(|s| section.starts_with(s))
        };
        TABLE
            .iter()
            .filter(|row| (arithmetic(row.section) || MORE.contains(&row.op)) && !LESS.contains(&row.op))
            .map(|row| {
                let forms = row.forms.iter().filter_map(|form| {
                    let mut parts = form.split(';').map(str::trim);
                    let (mods, types, shapes) = (parts.next()?, parts.next()?, parts.next()?);
                    let carries = mods.split_whitespace().any(|m| m.trim_end_matches('?') == "cc");
                    (!carries).then_some(Candidate { op: row.op, mods, types, shapes })
                });
                forms.collect::<Vec<_>>()
            })
            .filter(|forms| !forms.is_empty())
            .collect()
    })
}

/// The names in `a|b|CLASS`.
fn expand(group: &'static str) -> Vec<&'static str> {
    let of = |name: &'static str| {
        let class = CLASSES.iter().find(|(class, _)| *class == name).map(|(_, names)| *names);
        class.unwrap_or(name).split('|').collect::<Vec<_>>()
    };
    group.split('|').flat_map(of).collect()
}

/// Bits of a type by its name; `None` for those that no register here holds.
fn width(ty: &str) -> Option<u32> {
    Some(match ty {
        "pred" => 1,
        "b8" | "u8" | "s8" => 8,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 16,
        "b32" | "u32" | "s32" | "f32" | "tf32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" => 32,
        "b64" | "u64" | "s64" | "f64" => 64,
        _ => return None,
    })
}

fn class(bits: u32) -> Class {
    match bits {
        1 => Class::P,
        8 | 16 => Class::H,
        32 => Class::R,
        _ => Class::D,
    }
}

/// A literal of an integer or binary floating type.
fn literal(c: &mut Choices<'_>, ty: &str) -> Option<String> {
    const EDGES: &[u64] =
        &[0, 1, 2, 31, 32, 7, 0x8000_0000, u64::MAX, 0x7fff_ffff, 63, 0xff, 0x8000, 0x0123_4567_89ab_cdef];
    const FLOATS: &[f32] = &[0.0, 1.0, -1.5, 0.1, f32::INFINITY, f32::NAN, 1e-40, -3e38, 65504.0, 2.5];
    match ty {
        "f32" => Some(format!("0f{:08X}", c.pick(FLOATS).to_bits())),
        "f64" => Some(format!("0d{:016X}", f64::from(*c.pick(FLOATS)).to_bits())),
        "pred" | "f16" | "bf16" | "f16x2" | "bf16x2" | "tf32" | "u16x2" | "s16x2" | "e4m3x2" | "e5m2x2" => {
            None
        }
        _ => {
            let bits = width(ty)?;
            let v = *c.pick(EDGES) & (u64::MAX >> (64 - bits));
            // Signed literals are those of the type: a 16-bit 0xffff is -1.
            if ty.starts_with('s') && bits < 64 && v >> (bits - 1) & 1 != 0 {
                Some(format!("-{}", (1u64 << bits) - v))
            } else {
                Some(v.to_string())
            }
        }
    }
}

/// An arithmetic instruction with its operands that the device takes; `None` where the choices lead to one that it does not.
pub(crate) fn choose(c: &mut Choices<'_>) -> Option<String> {
    let forms = c.pick(candidates());
    let form = c.pick(forms);
    let mut spelling = form.op.name().to_owned();
    for group in form.mods.split_whitespace() {
        let (names, optional) = group.strip_suffix('?').map_or((group, false), |g| (g, true));
        if optional && !c.chance(100) {
            continue;
        }
        spelling = format!("{spelling}.{}", c.pick(&expand(names)));
    }
    let types: Vec<&'static str> = form.types.split_whitespace().map(|g| *c.pick(&expand(g))).collect();
    for t in &types {
        spelling = format!("{spelling}.{t}");
    }
    let shapes: Vec<&str> = form.shapes.split('/').collect();
    let shape = *c.pick(&shapes);
    let mut operands = Vec::new();
    let mut kinds = String::new();
    for slot in shape.split_whitespace() {
        let (relaxed, slot) = slot.strip_prefix('~').map_or((false, slot), |s| (true, s));
        let (kind, ty) = slot.split_once(':').unwrap_or((slot, "0"));
        let (ty, bits) = match ty {
            "w" => (None, 2 * width(types.first()?)?),
            _ => match ty.parse::<usize>() {
                Ok(n) => (types.get(n).copied(), width(types.get(n)?)?),
                Err(_) => (Some(ty), width(ty)?),
            },
        };
        let mut at = class(bits);
        let integer = ty.is_some_and(|t| t.starts_with(['u', 's', 'b']) && !t.starts_with("bf"));
        if relaxed && integer && c.chance(60) {
            at = *c.pick(&[Class::R, Class::D]);
            if bits > at.bits() {
                at = Class::D;
            }
        } else if bits == 8 && !relaxed {
            return None;
        }
        let reg = |c: &mut Choices<'_>, at: Class| Reg::new(at, c.below(at.count()));
        let text = match kind {
            "d" => {
                kinds.push_str(at.letter());
                reg(c, at).to_string()
            }
            "pq" => {
                let d = reg(c, Class::P);
                if c.chance(60) {
                    let q = reg(c, Class::P);
                    if q != d {
                        kinds.push_str("pq");
                        format!("{d}|{q}")
                    } else {
                        kinds.push('p');
                        d.to_string()
                    }
                } else {
                    kinds.push('p');
                    d.to_string()
                }
            }
            "dp" => {
                let d = reg(c, at);
                let p = reg(c, Class::P);
                kinds.push_str("dp");
                format!("{d}|{p}")
            }
            "a" | "b" | "c" | "e" => {
                let number = match ty {
                    Some(ty) if c.chance(50) => literal(c, ty),
                    _ => None,
                };
                match number {
                    Some(n) => {
                        kinds.push('#');
                        n
                    }
                    None => {
                        kinds.push_str(at.letter());
                        reg(c, at).to_string()
                    }
                }
            }
            "r" => {
                kinds.push_str(at.letter());
                reg(c, at).to_string()
            }
            "i" => {
                kinds.push('i');
                // A truth table, a shift: small.
                c.below(256).to_string()
            }
            "q" => {
                kinds.push('q');
                let p = reg(c, Class::P);
                if c.chance(80) { format!("!{p}") } else { p.to_string() }
            }
            _ => return None,
        };
        operands.push(text);
    }
    let text = format!("{spelling} {}", operands.join(", "));
    known(&spelling, &kinds, &text).then_some(text)
}

/// Whether parser and device take an instruction of this spelling with operands of these kinds.
fn known(spelling: &str, kinds: &str, text: &str) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<(String, String), bool>> = RefCell::default();
    }
    let key = (spelling.to_owned(), kinds.to_owned());
    if let Some(known) = KNOWN.with_borrow(|k| k.get(&key).copied()) {
        return known;
    }
    let module = format!(
        "{}.visible .entry k()\n{{\n{}{text};\nret;\n}}\n",
        crate::program::HEADER,
        crate::program::declarations()
    );
    let takes = assay_ptx::parse_module(&module).is_ok_and(|m| assay_simt::Loaded::new(&m).is_ok());
    KNOWN.with_borrow_mut(|k| k.insert(key, takes));
    takes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::choices::Random;

    #[test]
    fn nearly_every_arithmetic_opcode_is_generated() {
        let mut random = Random(7);
        let mut seen = BTreeSet::new();
        let mut spellings = BTreeSet::new();
        for _ in 0..20_000 {
            let bytes = random.bytes(32);
            if let Some(s) = choose(&mut Choices::new(&bytes)) {
                let spelling = s.split(' ').next().unwrap_or("").to_owned();
                seen.insert(spelling.split('.').next().unwrap_or("").to_owned());
                spellings.insert(spelling);
            }
        }
        let missing: Vec<&str> =
            candidates().iter().map(|f| f[0].op.name()).filter(|n| !seen.contains(*n)).collect();
        assert!(missing.len() <= 2, "never generated: {missing:?}");
        assert!(spellings.len() > 800, "{} spellings", spellings.len());
    }
}
