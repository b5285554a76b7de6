//! Calls as CUDA text: the operator's plain kernel with this call's sizes in place.
//!
//! The plain `launch` is interpreted with the values that its frame binds, which says what is launched on what. Of a
//! kernel's parameters only the pointers to tensors stay; lists, numbers and what is null become definitions at the
//! beginning of its body. Kernels with the same text are one kernel.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use assay_ops::Op;
use assay_ops::array::{Scalar, Value};
use assay_ops::plain::{Call as PlainCall, Lowered, Placement, Plain, Step};
use assay_problems::{Bindings, HostProgram, ParameterKind, PlanArg, PlanOp};
use assay_tensor::DType;

use crate::emit::{Arg, Call, Cx, TensorId, zeros};
use crate::error::Unsupported;
use crate::text;

/// Elements of the list of a kernel: beyond it something else was meant.
const MAX_LIST: usize = 64;

/// One plain file, taken apart.
struct PlainText {
    /// What it computes, as comment lines.
    about: String,
    /// Functions that its kernels call.
    helpers: Vec<Function>,
    kernels: Vec<Function>,
}

#[derive(Clone)]
struct Function {
    /// Everything before the name, `__device__ float `.
    before: String,
    name: String,
    /// Type and name of each parameter.
    params: Vec<(String, String)>,
    /// The lines between the braces.
    body: Vec<String>,
}

/// Where a pointer parameter of a plain `launch` points.
enum Target {
    /// A tensor of the program or scratch of this call, with a distance in elements.
    Buffer(String, i64),
    /// Values that become a constant array.
    List(Vec<String>),
    Null,
}

/// The CUDA file being written.
#[derive(Default)]
pub(crate) struct Cuda {
    texts: BTreeMap<(&'static str, &'static str), (PlainText, HostProgram)>,
    helpers: Vec<String>,
    /// Kernels by their text without the name, in order.
    kernels: Vec<(String, String, String)>,
    numbers: BTreeMap<String, u64>,
    launch: Vec<String>,
    scratch: u64,
}

fn internal(op: &Op, what: impl std::fmt::Display) -> Unsupported {
    Unsupported::Use { op: op.name.to_owned(), node: String::new(), what: what.to_string() }
}

impl Cuda {
    /// Adds what a call launches.
    ///
    /// # Errors
    /// `Use` where the operator's frame refuses the call.
    pub fn call(&mut self, cx: &Cx<'_>, call: &Call) -> Result<(), Unsupported> {
        let fault = |f: assay_ops::Fault| internal(call.op, f.0);
        let mut args = Vec::with_capacity(call.op.params.len());
        for (p, a) in call.op.params.iter().zip(&call.args) {
            args.push(match (a, p.default) {
                (Some(a), _) => cx.placeholder(a).map_err(fault)?,
                (None, Some(assay_ops::op::Literal::Scalar(s))) => Value::Scalar(s),
                (None, Some(assay_ops::op::Literal::Text(t))) => Value::Text(t.to_owned()),
                (None, _) => Value::None,
            });
        }
        let first = call.results.iter().flatten().next().copied();
        let first = first.ok_or_else(|| internal(call.op, "a call without results"))?;
        let results: Vec<Value<f32>> = call
            .results
            .iter()
            .map(|r| match r {
                Some(id) => zeros(&cx.tensors[*id]),
                // A position that nothing reads has the shape of the value.
                None => zeros(&crate::emit::Tensor { dtype: DType::I64, ..cx.tensors[first].clone() }),
            })
            .collect::<Result<_, _>>()
            .map_err(fault)?;
        let result = if call.count > 1 {
            Value::Tuple(results)
        } else {
            results.into_iter().next().unwrap_or(Value::None)
        };
        if cx.tensors[first].shape.contains(&0) {
            return Ok(());
        }
        for id in call.results.iter().flatten() {
            self.allocate(cx, *id)?;
        }
        self.lowered(cx, call, call.op, args, &result)
    }

    /// Scratch for a tensor that is no output of the problem; the caller filters those.
    fn allocate(&mut self, cx: &Cx<'_>, id: TensorId) -> Result<(), Unsupported> {
        let t = &cx.tensors[id];
        let count = assay_tensor::numel(&t.shape).unwrap_or(u64::MAX);
        self.launch.push(format!("SCRATCH {} {} {count}", element(t.dtype)?, t.name));
        Ok(())
    }

    fn lowered(
        &mut self,
        cx: &Cx<'_>,
        call: &Call,
        op: &'static Op,
        args: Vec<Value<f32>>,
        result: &Value<f32>,
    ) -> Result<(), Unsupported> {
        let plain = op.plain.as_ref().ok_or_else(|| internal(op, "no plain kernel"))?;
        let plain_call = PlainCall { op, args: &args, result, placement: Placement::Contiguous };
        let steps = match (plain.frame)(&plain_call).map_err(|f| internal(op, f.0))? {
            Lowered::Steps(steps) => steps,
            Lowered::As(other) => {
                let kept = args.into_iter().take(other.params.len()).collect();
                return self.lowered(cx, call, other, kept, result);
            }
        };
        let element = plain.element_of(&args, result);
        for step in &steps {
            self.step(cx, call, op, plain, element, step)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        cx: &Cx<'_>,
        call: &Call,
        op: &'static Op,
        plain: &Plain,
        element_type: &'static str,
        step: &Step,
    ) -> Result<(), Unsupported> {
        let key = (plain.file, element_type);
        if let Entry::Vacant(free) = self.texts.entry(key) {
            let host = HostProgram::parse(&plain.source(element_type)).map_err(|e| internal(op, e))?;
            free.insert((taken_apart(plain.text), host));
        }
        let Some((_, host)) = self.texts.get(&key) else { return Ok(()) };
        let mut bindings =
            Bindings { ints: step.ints.clone(), floats: step.floats.clone(), ..Bindings::default() };
        let mut targets: BTreeMap<String, Target> = BTreeMap::new();
        let mut converted = Vec::new();
        let declared: Vec<(String, DType)> = host
            .parameters()
            .iter()
            .filter_map(|p| match &p.kind {
                ParameterKind::Pointer { dtype, .. } => Some((p.name.clone(), (*dtype)?)),
                _ => None,
            })
            .collect();
        for (name, dtype) in &declared {
            let out = ["y", "y_index"].iter().position(|n| n == name);
            let target = if let Some(k) = out {
                match call.results.get(k).copied().flatten() {
                    Some(id) => Target::Buffer(cx.tensors[id].name.clone(), 0),
                    None => Target::Null,
                }
            } else if let Some(list) = step.lists.get(name) {
                if list.len() > MAX_LIST {
                    return Err(internal(op, "a list is too long"));
                }
                Target::List(list.iter().map(i64::to_string).collect())
            } else {
                self.tensor(cx, call, op, step, (name, *dtype), &declared, &mut converted)?
            };
            bindings.buffers.insert(name.clone(), Some(*dtype));
            targets.insert(name.clone(), target);
        }
        for (from, to, own, dtype, count) in converted {
            self.convert(&from, &to, own, dtype, count)?;
        }
        let Some((parts, host)) = self.texts.get(&key) else { return Ok(()) };
        let plan = host.plan(&bindings).map_err(|e| internal(op, e))?;
        let single = parts.kernels.len() == 1;
        let mut written = Vec::new();
        let mut scratch: BTreeMap<String, String> = BTreeMap::new();
        for launched in &plan.ops {
            let PlanOp::Launch(launched) = launched else { continue };
            let Some(kernel) = parts.kernels.iter().find(|k| k.name == launched.kernel) else {
                return Err(internal(op, format!("no kernel `{}`", launched.kernel)));
            };
            if kernel.params.len() != launched.args.len() {
                return Err(internal(op, format!("the launch of `{}`", launched.kernel)));
            }
            let (mut params, mut arguments, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
            for ((of, name), a) in kernel.params.iter().zip(&launched.args) {
                let of = typed(of, element_type);
                let changed = changes(&kernel.body, name);
                let target = match a {
                    PlanArg::Buffer { name, .. } => targets.get(name),
                    _ => None,
                };
                match (a, target) {
                    (PlanArg::Null, _) | (_, Some(Target::Null)) => {
                        fixed.push(format!("{of} {name} = nullptr;"))
                    }
                    (PlanArg::Buffer { .. }, Some(Target::List(values))) => {
                        let base = of.trim_end_matches('*').trim_end();
                        let values = if values.is_empty() { "0".to_owned() } else { values.join(", ") };
                        if changed {
                            fixed.push(format!("{base} {name}_of[] = {{{values}}};"));
                            fixed.push(format!("{of} {name} = {name}_of;"));
                        } else {
                            fixed.push(format!("{base} {name}[] = {{{values}}};"));
                        }
                    }
                    (PlanArg::Buffer { offset_bytes, name: of_what }, found) => {
                        let size = i64::try_from(pointee(&of).size_bytes()).unwrap_or(1);
                        let mut far = offset_bytes / size;
                        let buffer = match found {
                            Some(Target::Buffer(buffer, more)) => {
                                far += more;
                                buffer.clone()
                            }
                            // Scratch of the plain launcher.
                            _ => match scratch.get(of_what) {
                                Some(known) => known.clone(),
                                None => {
                                    let s = plan.scratch.iter().find(|s| s.name == *of_what);
                                    let s =
                                        s.ok_or_else(|| internal(op, format!("no buffer `{of_what}`")))?;
                                    self.scratch += 1;
                                    let own = format!("{}_{}_", op.name, self.scratch);
                                    written.push(format!("SCRATCH {} {own} {}", element(s.dtype)?, s.len));
                                    scratch.insert(of_what.clone(), own.clone());
                                    own
                                }
                            },
                        };
                        params.push(format!("{of} {name}"));
                        arguments.push(if far == 0 { buffer } else { format!("{buffer} + {far}") });
                    }
                    (PlanArg::Int(v, 8), _) => {
                        fixed.push(format!(
                            "{}bool {name} = {};",
                            constant(changed),
                            if *v == 0 { "false" } else { "true" }
                        ));
                    }
                    (PlanArg::Int(v, _), _) => fixed.push(format!("{}{of} {name} = {v};", constant(changed))),
                    (PlanArg::Float(v, _), _) => {
                        fixed.push(format!("{}{of} {name} = {};", constant(changed), text::float(*v as f32)));
                    }
                }
            }
            // The number of threads behind a number of blocks, where it is one of the frame's.
            let threads = ["count", "rows"].iter().filter_map(|n| step.ints.get(*n)).find(|&&n| {
                launched.block == [256, 1, 1]
                    && launched.grid == [u64::try_from(n).unwrap_or(0).div_ceil(256), 1, 1]
            });
            let shape = match threads {
                Some(n) => format!("blocks({n}), THREADS"),
                None => format!("{}, {}", launched.grid[0], launched.block[0]),
            };
            let mut body: Vec<String> = fixed.iter().map(|l| format!("    {l}")).collect();
            body.extend(kernel.body.iter().map(|l| typed(l, element_type)));
            let mut helpers = Vec::new();
            for h in &parts.helpers {
                let own = format!("{}_{}", plain.file.trim_end_matches(".cu"), h.name);
                body = body.iter().map(|l| word(l, &h.name, &own)).collect();
                let mut all: Vec<String> = h.body.clone();
                for other in &parts.helpers {
                    let other_own = format!("{}_{}", plain.file.trim_end_matches(".cu"), other.name);
                    all = all.iter().map(|l| word(l, &other.name, &other_own)).collect();
                }
                let list: Vec<String> = h.params.iter().map(|(t, n)| format!("{t} {n}")).collect();
                helpers.push(format!("{}{own}({}) {{\n{}\n}}\n", h.before, list.join(", "), all.join("\n")));
            }
            for h in helpers {
                if !self.helpers.contains(&h) {
                    self.helpers.push(h);
                }
            }
            let stem = if single {
                op.name.to_owned()
            } else {
                format!("{}_{}", op.name, launched.kernel.trim_end_matches("_kernel"))
            };
            let rest = format!("{}) {{\n{}\n}}\n", wrapped(&params, 4), body.join("\n"));
            let about = format!("{}\n", parts.about);
            let name = match self.kernels.iter().find(|(_, _, r)| *r == rest) {
                Some((name, ..)) => name.clone(),
                None => {
                    let k = self.numbers.entry(stem.clone()).or_insert(0);
                    *k += 1;
                    let name = format!("{stem}_{k}");
                    self.kernels.push((name.clone(), about, rest));
                    name
                }
            };
            written.push(format!("{name}<<<{shape}>>>({});", wrapped(&arguments, 8)));
        }
        self.launch.extend(written);
        Ok(())
    }

    /// Where a tensor parameter points; what has another element type is converted first.
    #[expect(clippy::too_many_arguments, reason = "the parts of one step")]
    fn tensor(
        &mut self,
        cx: &Cx<'_>,
        call: &Call,
        op: &'static Op,
        step: &Step,
        (name, dtype): (&str, DType),
        declared: &[(String, DType)],
        converted: &mut Vec<(String, String, DType, DType, u64)>,
    ) -> Result<Target, Unsupported> {
        let only = [("_i64", DType::I64), ("_bool", DType::Bool)];
        let suffixed = only.iter().find_map(|(s, d)| name.strip_suffix(s).map(|base| (base, *d)));
        let (source, base, only_for) = match (step.tensors.get(name), suffixed) {
            (Some(s), _) => (s, name, None),
            (None, Some((base, own))) => match step.tensors.get(base) {
                Some(s) => (s, base, Some(own)),
                None => return Ok(Target::Null),
            },
            (None, None) => return Ok(Target::Null),
        };
        let missing = || internal(op, format!("`{name}` is bound to no argument"));
        let arg = call.args.get(source.param).and_then(Option::as_ref);
        let arg = match (arg, source.item) {
            (Some(Arg::Tuple(all)), Some(k)) => all.get(k),
            (a, _) => a,
        };
        let default = call.op.params.get(source.param).and_then(|p| p.default);
        let id = match (arg, default) {
            (Some(Arg::Tensor(id)), _) => *id,
            (Some(Arg::Number(n)), _) => return Ok(Target::List(vec![literal(*n, dtype)])),
            (None, Some(assay_ops::op::Literal::Scalar(n))) => {
                return Ok(Target::List(vec![literal(n, dtype)]));
            }
            _ => return Err(missing()),
        };
        let own = cx.tensors[id].dtype;
        // A second declaration with the tensor's own type takes it.
        let taken = only_for.is_none()
            && declared
                .iter()
                .any(|(n, _)| only.iter().any(|(s, d)| n.strip_suffix(s) == Some(base) && own == *d));
        if taken || only_for.is_some_and(|d| own != d) {
            return Ok(Target::Null);
        }
        let held = cx.tensors[cx.storage(id)].name.clone();
        if own == dtype {
            return Ok(Target::Buffer(held, source.offset));
        }
        self.scratch += 1;
        let to = format!("{held}_{}_{}_", dtype, self.scratch);
        let count = assay_tensor::numel(&cx.tensors[id].shape).unwrap_or(0);
        converted.push((held, to.clone(), own, dtype, count));
        Ok(Target::Buffer(to, source.offset))
    }

    /// The elements of a tensor as another type.
    fn convert(
        &mut self,
        from: &str,
        to: &str,
        own: DType,
        dtype: DType,
        count: u64,
    ) -> Result<(), Unsupported> {
        let (a, b) = (element(own)?, element(dtype)?);
        let rest = format!(
            "const {a}* input, {b}* y) {{\n    const long long count = {count};\n    long long i = thread_number();\n    \
             if (i >= count) return;\n    y[i] = input[i];\n}}\n"
        );
        let name = match self.kernels.iter().find(|(_, _, r)| *r == rest) {
            Some((name, ..)) => name.clone(),
            None => {
                let k = self.numbers.entry("convert".to_owned()).or_insert(0);
                *k += 1;
                let name = format!("convert_{k}");
                self.kernels.push((name.clone(), format!("// {own} to {dtype}.\n"), rest));
                name
            }
        };
        self.launch.push(format!("SCRATCH {b} {to} {count}"));
        self.launch.push(format!("{name}<<<blocks({count}), THREADS>>>({from}, {to});"));
        Ok(())
    }

    /// The whole file. `given` and `outputs` are the parameters of `launch`: their C++ types and names.
    pub fn finish(self, head: &str, given: &[(String, String)], outputs: &[(String, String)]) -> String {
        let mut out = format!("// {head}\n");
        let mut skipping = false;
        for line in assay_ops::plain::shared_text().lines().skip(2) {
            match line {
                l if l.starts_with("#ifndef") => skipping = true,
                l if l.starts_with("#endif") => skipping = false,
                l if !skipping => {
                    out.push_str(l);
                    out.push('\n');
                }
                _ => {}
            }
        }
        for h in &self.helpers {
            out.push('\n');
            out.push_str(h);
        }
        for (name, about, rest) in &self.kernels {
            let _ = write!(out, "\n{about}__global__ void {name}({rest}");
        }
        let params: Vec<String> = given
            .iter()
            .map(|(t, n)| format!("const {t}* {n}"))
            .chain(outputs.iter().map(|(t, n)| format!("{t}* {n}")))
            .collect();
        let _ = writeln!(out, "\nvoid launch({}) {{", wrapped(&params, 4));
        for line in &self.launch {
            let mut words = line.split(' ');
            match (words.next(), words.clone().collect::<Vec<_>>().as_slice()) {
                (Some("SCRATCH"), [ty @ .., name, count]) => {
                    if !outputs.iter().any(|(_, n)| n == name) {
                        let ty = ty.join(" ");
                        let _ = writeln!(out, "    {ty}* {name} = scratch<{ty}>({count});");
                    }
                }
                _ => {
                    let _ = writeln!(out, "    {line}");
                }
            }
        }
        out.push_str("}\n");
        out
    }
}

/// Parameters or arguments in lines, later ones indented.
fn wrapped(params: &[String], indent: usize) -> String {
    let mut out = String::new();
    // As long as what most often stands before them.
    let mut width = 44;
    for (i, p) in params.iter().enumerate() {
        if i > 0 {
            out.push(',');
            width += 2;
            if width + p.len() > 110 {
                let _ = write!(out, "\n{:indent$}", "");
                width = indent;
            } else {
                out.push(' ');
            }
        }
        out.push_str(p);
        width += p.len();
    }
    out
}

fn constant(changed: bool) -> &'static str {
    if changed { "" } else { "const " }
}

/// A number as an element of a constant array.
fn literal(n: Scalar, dtype: DType) -> String {
    match dtype {
        DType::F32 => text::float(n.to_f64() as f32),
        DType::Bool => if n.to_f64() != 0.0 { "true" } else { "false" }.to_owned(),
        _ => n.to_i64().map_or_else(|| (n.to_f64() as i64).to_string(), |i| i.to_string()),
    }
}

/// The C++ name of an element type.
pub(crate) fn element(dtype: DType) -> Result<&'static str, Unsupported> {
    match dtype {
        DType::F32 => Ok("float"),
        DType::I64 => Ok("long long"),
        DType::Bool => Ok("bool"),
        other => Err(Unsupported::Malformed(format!("a buffer of {other}"))),
    }
}

/// The element type behind a pointer as written.
fn pointee(of: &str) -> DType {
    match of.trim_end_matches('*').trim().trim_start_matches("const ").trim() {
        "long long" => DType::I64,
        "bool" => DType::Bool,
        _ => DType::F32,
    }
}

/// A line with `T` replaced.
fn typed(line: &str, element: &str) -> String {
    word(line, "T", element)
}

/// A line with a whole word replaced.
fn word(line: &str, from: &str, to: &str) -> String {
    let part = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = line.as_bytes();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(found) = line[at..].find(from).map(|i| i + at) {
        let end = found + from.len();
        let alone = (found == 0 || !part(bytes[found - 1])) && bytes.get(end).is_none_or(|b| !part(*b));
        out.push_str(&line[at..found]);
        out.push_str(if alone { to } else { from });
        at = end;
    }
    out.push_str(&line[at..]);
    out
}

/// Whether a body assigns to a parameter.
fn changes(body: &[String], name: &str) -> bool {
    body.iter().any(|line| {
        let code = line.split("//").next().unwrap_or("");
        code.match_indices(name).any(|(i, _)| {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (before, after) = (&code[..i], code[i + name.len()..].trim_start());
            if before.ends_with(part) || code[i + name.len()..].starts_with(part) {
                return false;
            }
            let plain = after.starts_with('=') && !after.starts_with("==");
            let compound = ["+=", "-=", "*=", "/=", "++", "--"].iter().any(|o| after.starts_with(o));
            plain || compound || before.ends_with("++") || before.ends_with("--")
        })
    })
}

/// A plain file's functions. The files are our own: an item begins at the first column and ends with a brace there.
fn taken_apart(source: &str) -> PlainText {
    let about: Vec<&str> = source.lines().take_while(|l| l.starts_with("//")).collect();
    let mut parts = PlainText { about: about.join("\n"), helpers: Vec::new(), kernels: Vec::new() };
    let lines: Vec<&str> = source.lines().collect();
    let mut at = about.len();
    while at < lines.len() {
        let begins =
            ["__global__", "__device__", "template", "void "].iter().any(|s| lines[at].starts_with(s));
        if !begins {
            at += 1;
            continue;
        }
        let end = (at..lines.len()).find(|&i| lines[i] == "}").unwrap_or(lines.len() - 1);
        let brace = (at..=end).find(|&i| lines[i].ends_with('{')).unwrap_or(end);
        let head = lines[at..=brace].iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ");
        let (before, rest) = head.split_once('(').unwrap_or((&head, ""));
        let name = before.rsplit(' ').next().unwrap_or("").to_owned();
        let params = rest
            .rsplit_once(')')
            .map_or("", |(p, _)| p)
            .split(',')
            .filter_map(|p| {
                let (t, n) = p.trim().rsplit_once(' ')?;
                Some((t.to_owned(), n.to_owned()))
            })
            .collect();
        let function = Function {
            before: before[..before.len() - name.len()].to_owned(),
            name,
            params,
            body: lines[(brace + 1).min(end)..end].iter().map(|l| (*l).to_owned()).collect(),
        };
        if lines[at].starts_with("__global__") {
            parts.kernels.push(function);
        } else if !lines[at].starts_with("void ") {
            parts.helpers.push(function);
        }
        at = end + 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plain_file_comes_apart_into_kernels_with_parameters_and_a_body() {
        for op in assay_ops::OPS {
            let Some(plain) = &op.plain else { continue };
            let parts = taken_apart(plain.text);
            assert!(!parts.kernels.is_empty(), "{}", plain.file);
            assert_eq!(parts.kernels.len(), plain.text.matches("__global__").count(), "{}", plain.file);
            assert_eq!(parts.helpers.len(), plain.text.matches("\n__device__").count(), "{}", plain.file);
            for f in parts.kernels.iter().chain(&parts.helpers) {
                assert!(!f.body.is_empty() && !f.params.is_empty(), "{}: {}", plain.file, f.name);
                assert!(f.params.iter().all(|(t, n)| !t.is_empty() && !n.starts_with('*')), "{}", plain.file);
            }
        }
    }

    #[test]
    fn only_whole_words_are_replaced_and_only_assignments_change() {
        assert_eq!(word("T x = (T)Tx + aT;", "T", "float"), "float x = (float)Tx + aT;");
        let body = |s: &str| vec![s.to_owned()];
        assert!(changes(&body("    shape += kept;"), "shape"));
        assert!(changes(&body("    ++rank;"), "rank"));
        assert!(!changes(&body("    if (rank == 2) y[rank] = shape[0];"), "rank"));
        assert!(!changes(&body("    ranks = 2; // rank = 3"), "rank"));
    }
}
