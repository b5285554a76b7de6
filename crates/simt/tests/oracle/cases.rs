//! `testdata/ptx/pass/opcodes`: for each arithmetic opcode one case with the spellings that NVRTC emits, a few operands
//! each, and the results that the oracles give. The files are compared with what is made here; `BLESS=1` writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::approx;
use super::device::Program;
use super::oracle;
use super::table::{self, Spelling};

/// Operands of each spelling: the threads of the case.
const THREADS: usize = 6;

/// One instruction of a case: its kernel text with registers of its own, operands, results.
struct Part {
    program: Program,
    want: Vec<[Option<u64>; 2]>,
}

fn part(s: &Spelling) -> Option<Part> {
    if table::approximate(s) {
        let vectors = approx::exact_operands(s, THREADS);
        let program = Program::of(s, 1)?.with_vectors(vectors.iter().map(|(v, _)| v.clone()).collect());
        return Some(Part { program, want: vectors.iter().map(|(_, r)| [Some(*r), None]).collect() });
    }
    let o = oracle(s)?;
    let program = Program::of(s, 16 * THREADS)?;
    let outputs = program.outputs;
    // Operands whose result the manual leaves open (division by zero) have no place here.
    let decided = |v: &Vec<u64>| {
        let w = o(v);
        w.first.is_some() && (outputs < 2 || w.second.is_some())
    };
    let all = (0..program.threads()).map(|t| program.vector(t).to_vec());
    let vectors: Vec<Vec<u64>> = all.filter(decided).take(THREADS).collect();
    let want = vectors
        .iter()
        .map(|v| {
            let w = o(v);
            [w.first, w.second]
        })
        .collect();
    Some(Part { program: program.with_vectors(vectors), want })
}

/// PTX and TOML of one opcode.
fn case(parts: &[Part]) -> (String, String) {
    let mut ptx = String::from(".version 8.6\n.target sm_100\n.address_size 64\n\n");
    ptx += ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n";
    ptx += ".reg .b64 %src, %dst, %wide, %off;\n.reg .b32 %tid;\n";
    ptx += "ld.param.u64 %src, [in];\nld.param.u64 %dst, [out];\nmov.u32 %tid, %tid.x;\n";
    ptx += "mul.wide.u32 %off, %tid, 8;\nadd.s64 %src, %src, %off;\nadd.s64 %dst, %dst, %off;\n";
    let (mut inputs, mut results): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for (k, p) in parts.iter().enumerate() {
        ptx += &p.program.part(&format!("%i{k}_"), inputs.len() * 8, results.len() * 8);
        for j in 0..p.program.inputs() {
            inputs.extend((0..THREADS).map(|t| p.program.vector(t)[j]));
        }
        for j in 0..p.program.outputs {
            results.extend(p.want.iter().map(|w| w[j].unwrap_or(0)));
        }
    }
    ptx += "ret;\n}\n";
    let list = |v: &[u64]| v.iter().map(|x| (*x as i64).to_string()).collect::<Vec<_>>().join(", ");
    let hex = |v: &[u64]| v.iter().map(|x| format!("\"{x:x}\"")).collect::<Vec<_>>().join(", ");
    let mut toml = format!("block = [{THREADS}, 1, 1]\nargs = [\"&in\", \"&out\"]\n\n");
    let _ = write!(
        toml,
        "[[buffer]]\nname = \"in\"\ndtype = \"u64\"\nlen = {}\nrole = \"input\"\ninit = [{}]\n\n",
        inputs.len(),
        list(&inputs)
    );
    let _ = writeln!(
        toml,
        "[[buffer]]\nname = \"out\"\ndtype = \"u64\"\nlen = {}\nexpect_bits = [{}]",
        results.len(),
        hex(&results)
    );
    (ptx, toml)
}

#[test]
fn the_cases_of_each_opcode_are_what_the_oracles_say() {
    let emitted: Vec<&str> = table::emitted().values().copied().collect();
    let mut by_opcode: BTreeMap<&'static str, Vec<Spelling>> = BTreeMap::new();
    for s in table::spellings().into_iter().chain(table::approximations()) {
        let list = by_opcode.entry(s.name()).or_default();
        // What NVRTC emits, and one spelling of every opcode in any case.
        if list.is_empty() || emitted.contains(&s.text.as_str()) {
            list.push(s);
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ptx/pass/opcodes");
    let bless = std::env::var_os("BLESS").is_some();
    let mut stale = Vec::new();
    for (name, list) in by_opcode {
        let parts: Vec<Part> = list.iter().filter_map(part).collect();
        assert!(!parts.is_empty(), "no case of `{name}`");
        let (ptx, toml) = case(&parts);
        for (extension, text) in [("ptx", ptx), ("toml", toml)] {
            let path = folder.join(format!("{name}.{extension}"));
            if bless {
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(&path, text).expect("a file");
            } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                stale.push(path.display().to_string());
            }
        }
    }
    assert!(stale.is_empty(), "not what the oracles say (write with BLESS=1): {stale:?}");
}
