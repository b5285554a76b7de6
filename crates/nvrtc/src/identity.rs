//! What a kernel is, apart from its names and its neighbours.
//!
//! The machine code comes as a relocatable object (`ptxas -c`): a section per function, and a relocation at every
//! place that refers to something, so nothing in the bytes depends on where a batch put it. The identity is SHA-256
//! over a walk from the kernel: its code, its launch limits, parameter layout and stack frame; then, in the order of
//! first reference, every function, constant, global and shared variable it reaches, each as content (bytes and size;
//! size and alignment for shared memory) and each reference as offset, kind, addend and the target's number in that
//! order. Names do not enter, except those of functions that the device provides (`vprintf`).
//!
//! Two kernels with equal identity do the same; equal behaviour does not imply equal identity (another register
//! allocation is another identity). Not seen: the order of variables in memory, which only an access out of bounds
//! can tell.
//!
//! Source: read off objects of NVRTC 13.5 with `readelf`; attribute numbers are those that `cuobjdump -elf` names
//! `EIATTR_…`. The tests compare kernels alone and in batches, so that a change of the format shows.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};
use sha2::{Digest, Sha256};

type Header = elf::FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// `sh_type` values without bytes in the file: globals that start as zero, shared memory.
const SHT_CUDA_GLOBAL: u32 = 0x7000_0007;
const SHT_CUDA_SHARED: u32 = 0x7000_000a;
const SHT_NOBITS: u32 = 8;
const SHT_RELA: u32 = 4;
const STT_SECTION: u8 = 3;
const STB_WEAK: u8 = 2;
/// `st_other` bit of shared variables.
const STO_CUDA_SHARED: u8 = 0x40;

/// `.nv.info` attributes that change what a kernel may be launched with, and how it reads its parameters.
const ATTR_MAX_THREADS: u8 = 0x05;
const ATTR_REQUIRED_THREADS: u8 = 0x10;
const ATTR_FRAME_SIZE: u8 = 0x11;
const ATTR_PARAMETER: u8 = 0x17;
const ATTR_PARAMETER_BYTES: u8 = 0x19;
const ATTR_CTA_PER_CLUSTER: u8 = 0x3d;
const ATTR_EXPLICIT_CLUSTER: u8 = 0x3e;
const ATTR_MAX_CLUSTER_RANK: u8 = 0x3f;
const KERNEL_ATTRS: [u8; 7] = [
    ATTR_MAX_THREADS,
    ATTR_REQUIRED_THREADS,
    ATTR_PARAMETER,
    ATTR_PARAMETER_BYTES,
    ATTR_CTA_PER_CLUSTER,
    ATTR_EXPLICIT_CLUSTER,
    ATTR_MAX_CLUSTER_RANK,
];

/// Functions that the device provides; everything else undefined is an error of the source.
const SYSTEM_FUNCTIONS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

struct Reloc {
    offset: u64,
    kind: u32,
    symbol: usize,
    addend: i64,
}

struct Section<'a> {
    name: &'a str,
    kind: u32,
    size: u64,
    /// Empty for sections without bytes in the file.
    data: &'a [u8],
    /// Sorted by offset.
    relocs: Vec<Reloc>,
}

struct Symbol<'a> {
    name: &'a str,
    /// 0 is undefined.
    section: usize,
    value: u64,
    size: u64,
    kind: u8,
    weak: bool,
    shared: bool,
}

/// Identity of one kernel.
pub(crate) struct Identity {
    pub sha256: String,
    pub unresolved: Vec<String>,
}

/// A parsed object of machine code.
pub(crate) struct Cubin<'a> {
    sections: Vec<Section<'a>>,
    symbols: Vec<Symbol<'a>>,
    by_section_name: HashMap<&'a str, usize>,
    /// Stack frame in bytes by text section.
    frames: HashMap<usize, u64>,
}

/// What a reference leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Function(usize),
    Variable(usize),
    Section(usize),
    ExternShared(usize),
    Extern(usize),
}

impl<'a> Cubin<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let bad = |e: object::read::Error| format!("machine code is not the ELF expected: {e}");
        let header = Header::parse(bytes).map_err(bad)?;
        let table = header.sections(LE, bytes).map_err(bad)?;
        let mut sections: Vec<Section<'a>> = Vec::new();
        for header in table.iter() {
            let name = str_of(table.section_name(LE, header).map_err(bad)?)?;
            let kind = header.sh_type(LE).0;
            let empty = matches!(kind, 0 | SHT_NOBITS | SHT_CUDA_GLOBAL | SHT_CUDA_SHARED);
            let data = if empty { &[][..] } else { header.data(LE, bytes).map_err(bad)? };
            sections.push(Section { name, kind, size: header.sh_size(LE), data, relocs: vec![] });
        }
        let symbol_table = table.symbols(LE, bytes, elf::SHT_SYMTAB).map_err(bad)?;
        let mut symbols = Vec::new();
        for (index, symbol) in symbol_table.enumerate() {
            let name = str_of(symbol_table.symbol_name(LE, symbol).map_err(bad)?)?;
            let section = symbol_table.symbol_section(LE, symbol, index).map_err(bad)?.map_or(0, |s| s.0);
            symbols.push(Symbol {
                name,
                section,
                value: symbol.st_value(LE),
                size: symbol.st_size(LE),
                kind: symbol.st_type().0,
                weak: symbol.st_bind().0 == STB_WEAK,
                shared: symbol.st_other().0 & STO_CUDA_SHARED != 0,
            });
        }
        for header in table.iter() {
            if header.sh_type(LE).0 != SHT_RELA {
                continue;
            }
            let Some((entries, _)) = header.rela(LE, bytes).map_err(bad)? else { continue };
            let target = header.sh_info(LE) as usize;
            let Some(section) = sections.get_mut(target) else {
                return Err(format!("relocations for section {target}, which does not exist"));
            };
            for entry in entries {
                section.relocs.push(Reloc {
                    offset: entry.r_offset(LE),
                    kind: entry.r_type(LE, false).0,
                    symbol: entry.r_sym(LE, false) as usize,
                    addend: entry.r_addend(LE),
                });
            }
            section.relocs.sort_by_key(|r| (r.offset, r.kind, r.addend));
        }
        let by_section_name = sections.iter().enumerate().map(|(i, s)| (s.name, i)).collect();
        let mut cubin = Self { sections, symbols, by_section_name, frames: HashMap::new() };
        cubin.read_frames()?;
        Ok(cubin)
    }

    fn read_frames(&mut self) -> Result<(), String> {
        let Some(&info) = self.by_section_name.get(".nv.info") else { return Ok(()) };
        let mut frames = HashMap::new();
        for (attr, value) in attributes(self.sections[info].data)? {
            if attr != ATTR_FRAME_SIZE || value.len() < 8 {
                continue;
            }
            let symbol = u32::from_le_bytes([value[0], value[1], value[2], value[3]]) as usize;
            let bytes = u32::from_le_bytes([value[4], value[5], value[6], value[7]]);
            if let Some(symbol) = self.symbols.get(symbol) {
                frames.insert(symbol.section, u64::from(bytes));
            }
        }
        self.frames = frames;
        Ok(())
    }

    /// Identity of the kernel whose entry is called `entry`.
    pub(crate) fn identity(&self, entry: &str) -> Result<Identity, String> {
        let section = *self
            .by_section_name
            .get(format!(".text.{entry}").as_str())
            .ok_or_else(|| format!("machine code has no kernel `{entry}`"))?;
        let mut walk = Walk {
            cubin: self,
            hash: Sha256::new(),
            order: vec![],
            number: HashMap::new(),
            unresolved: vec![],
        };
        walk.hash.update(b"assay kernel identity 1");
        walk.number_of(Node::Function(section));
        let mut next = 0;
        while let Some(&node) = walk.order.get(next) {
            walk.visit(node)?;
            next += 1;
        }
        let sha256 = walk.hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        Ok(Identity { sha256, unresolved: walk.unresolved })
    }

    /// What `symbol` + `addend` refers to, with the offset inside it.
    fn resolve(&self, index: usize, addend: i64) -> Result<(Node, i64), String> {
        let symbol = self.symbols.get(index).ok_or("a relocation without a symbol")?;
        if symbol.section == 0 {
            let node = if symbol.shared { Node::ExternShared(index) } else { Node::Extern(index) };
            return Ok((node, addend));
        }
        let section = self.sections.get(symbol.section).ok_or("a symbol in a section that does not exist")?;
        if section.name.starts_with(".text.") {
            let value = i64::try_from(symbol.value).map_err(|_| "a symbol value out of range")?;
            return Ok((Node::Function(symbol.section), addend.wrapping_add(value)));
        }
        if symbol.kind != STT_SECTION {
            return Ok((Node::Variable(index), addend));
        }
        // A reference to a section plus an offset: the variable there, if one is.
        let at = u64::try_from(addend).unwrap_or(u64::MAX);
        let inside = self.symbols.iter().position(|s| {
            s.section == symbol.section
                && s.kind != STT_SECTION
                && s.size > 0
                && at >= s.value
                && at - s.value < s.size
        });
        Ok(match inside {
            Some(found) => (Node::Variable(found), addend.wrapping_sub(self.symbols[found].value as i64)),
            None => (Node::Section(symbol.section), addend),
        })
    }
}

struct Walk<'c, 'a> {
    cubin: &'c Cubin<'a>,
    hash: Sha256,
    order: Vec<Node>,
    number: HashMap<Node, u64>,
    unresolved: Vec<String>,
}

impl Walk<'_, '_> {
    fn number_of(&mut self, node: Node) -> u64 {
        let next = self.order.len() as u64;
        *self.number.entry(node).or_insert_with(|| {
            self.order.push(node);
            next
        })
    }

    fn put(&mut self, value: u64) {
        self.hash.update(value.to_le_bytes());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u64);
        self.hash.update(bytes);
    }

    fn visit(&mut self, node: Node) -> Result<(), String> {
        let cubin = self.cubin;
        match node {
            Node::Function(index) => {
                self.hash.update(b"function");
                let section = &cubin.sections[index];
                self.content(index, 0, section.size)?;
                let name = section.name.strip_prefix(".text.").unwrap_or(section.name);
                self.put(cubin.frames.get(&index).copied().unwrap_or(0));
                if let Some(&info) = cubin.by_section_name.get(format!(".nv.info.{name}").as_str()) {
                    let mut kept: Vec<(u8, &[u8])> = attributes(cubin.sections[info].data)?
                        .into_iter()
                        .filter(|(attr, _)| KERNEL_ATTRS.contains(attr))
                        .collect();
                    kept.sort();
                    for (attr, value) in kept {
                        self.hash.update([attr]);
                        self.put_bytes(value);
                    }
                }
                // Literal pools of the function: bank 2 and what the optimiser adds; bank 0 is the parameters.
                for (at, section) in cubin.sections.iter().enumerate() {
                    let pool = section
                        .name
                        .strip_prefix(".nv.constant")
                        .and_then(|rest| rest.strip_suffix(name))
                        .and_then(|rest| rest.strip_suffix('.'));
                    if pool.is_some_and(|bank| bank != "0") {
                        let number = self.number_of(Node::Section(at));
                        self.put(number);
                    }
                }
            }
            Node::Variable(index) => {
                let symbol = &cubin.symbols[index];
                let section = &cubin.sections[symbol.section];
                self.put(u64::from(section.kind));
                if section.kind == SHT_CUDA_SHARED || symbol.shared {
                    // Shared variables carry their alignment as value.
                    self.hash.update(b"shared");
                    self.put(symbol.value);
                    self.put(symbol.size);
                } else {
                    self.hash.update(b"variable");
                    self.content(symbol.section, symbol.value, symbol.size)?;
                }
            }
            Node::Section(index) => {
                self.hash.update(b"section");
                self.put(u64::from(cubin.sections[index].kind));
                self.content(index, 0, cubin.sections[index].size)?;
            }
            Node::ExternShared(index) => {
                self.hash.update(b"dynamic shared");
                self.put(cubin.symbols[index].value);
            }
            Node::Extern(index) => {
                let symbol = &cubin.symbols[index];
                self.hash.update(b"external");
                self.put_bytes(symbol.name.as_bytes());
                if !symbol.weak && !SYSTEM_FUNCTIONS.contains(&symbol.name) {
                    self.unresolved.push(symbol.name.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Bytes and references of a range of a section.
    fn content(&mut self, section: usize, start: u64, size: u64) -> Result<(), String> {
        let section = &self.cubin.sections[section];
        let outside = || format!("a symbol reaches past the end of section `{}`", section.name);
        let end = start.checked_add(size).filter(|&end| end <= section.size).ok_or_else(outside)?;
        self.put(size);
        if section.data.is_empty() {
            self.hash.update(b"zero");
        } else {
            let bytes = section.data.get(start as usize..end as usize).ok_or_else(outside)?;
            self.hash.update(bytes);
        }
        let inside: Vec<&Reloc> =
            section.relocs.iter().filter(|r| r.offset >= start && r.offset < end).collect();
        self.put(inside.len() as u64);
        for reloc in inside {
            let (node, addend) = self.cubin.resolve(reloc.symbol, reloc.addend)?;
            let number = self.number_of(node);
            self.put(reloc.offset - start);
            self.put(u64::from(reloc.kind));
            self.put(addend as u64);
            self.put(number);
        }
        Ok(())
    }
}

/// Attributes of a `.nv.info` section: a format byte, an attribute byte, then a value whose length the format says.
fn attributes(mut data: &[u8]) -> Result<Vec<(u8, &[u8])>, String> {
    let mut out = Vec::new();
    while let [format, attr, a, b, ..] = *data {
        let length = if format == 4 { usize::from(u16::from_le_bytes([a, b])) } else { 0 };
        let value = if format == 4 { data.get(4..4 + length) } else { data.get(2..4) };
        out.push((attr, value.ok_or("a `.nv.info` section is cut")?));
        data = &data[4 + length..];
    }
    Ok(out)
}

fn str_of(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a name in the machine code is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_every_format_are_read_and_a_cut_one_is_an_error() {
        let data = [4, 0x05, 4, 0, 1, 2, 3, 4, 3, 0x19, 12, 0];
        assert_eq!(attributes(&data).unwrap(), [(5, &[1u8, 2, 3, 4][..]), (0x19, &[12, 0][..])]);
        assert!(attributes(&data[..6]).is_err());
    }

    #[test]
    fn bytes_that_are_not_an_object_are_an_error() {
        assert!(Cubin::parse(b"").is_err());
        assert!(Cubin::parse(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]).is_err());
    }
}
