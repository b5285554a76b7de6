//! From the graph to the two files of a problem.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use assay_ops::Program;
use assay_problems::Problem;

use crate::emit::{Arg, Call, Cx, TensorId};
use crate::error::Unsupported;
use crate::graph::{Argument, ExportedGraph};
use crate::kernels::{Cuda, element};
use crate::{inplace, rows, text};

/// A problem's folder as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedProblem {
    /// The folder's name, `2_conv_relu`.
    pub slug: String,
    /// `problem.toml`.
    pub toml: String,
    /// `kernel.cu`.
    pub cuda: String,
    /// The reference.
    pub reference: String,
    /// From each input and parameter of the problem to the tensor of the export: `input:0`, `parameter:conv.weight`,
    /// `buffer:…`, `constant:…`, `random:0` (the first random tensor that the forward pass draws).
    pub sources: BTreeMap<String, String>,
    /// The outputs' names, in the order of the module's.
    pub outputs: Vec<String>,
    /// Inputs and parameters whose initialisers were fitted to their values.
    pub fitted: Vec<String>,
    /// Kernels launched.
    pub launches: usize,
}

impl GeneratedProblem {
    /// Writes `problem.toml` and `kernel.cu` into a folder, which is made.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("problem.toml"), &self.toml)?;
        std::fs::write(folder.join("kernel.cu"), &self.cuda)
    }

    /// The problem, as the catalogue loads it.
    ///
    /// # Errors
    /// `Malformed` where the catalogue refuses what was generated.
    pub fn problem(&self) -> Result<Problem, Unsupported> {
        let dir = Path::new("<generated>").join(&self.slug);
        assay_problems::load_text(&self.toml, &self.cuda, &dir)
            .map_err(|e| Unsupported::Malformed(e.to_string()))
    }
}

/// Lowers a graph.
///
/// # Errors
/// `Operator` for the first operator without a row, `Use` for a use that a row does not cover, `Malformed` and `TooLarge`
/// for a graph that is none.
pub fn lower(graph: &ExportedGraph) -> Result<GeneratedProblem, Unsupported> {
    graph.check()?;
    let (nodes, outputs) = inplace::functional(graph)?;
    let mut cx = Cx::new(graph, &nodes, &outputs);
    cx.inputs()?;
    for node in &nodes {
        rows::lower_node(&mut cx, node)?;
    }
    let mut results: Vec<TensorId> = Vec::new();
    let mut taken = BTreeSet::new();
    for (k, output) in outputs.iter().enumerate() {
        let Argument::Node(name) = output else { continue };
        let Arg::Tensor(id) = cx.value(name)? else {
            return Err(Unsupported::Malformed(format!("the output `{name}` is no tensor")));
        };
        let name = if outputs.len() == 1 { "y".to_owned() } else { format!("y{k}") };
        let id = cx.output(id, &name, &taken);
        taken.insert(id);
        results.push(id);
    }
    let reference = reference(&cx);
    let given: Vec<&str> = cx.given.iter().map(|g| cx.tensors[g.tensor].name.as_str()).collect();
    Program::parse(&reference, &given, &[])
        .map_err(|e| Unsupported::Malformed(format!("the reference does not parse: {e}\n{reference}")))?;

    let mut cuda = Cuda::default();
    for call in &cx.calls {
        // Only another name for the same elements; an output has elements of its own.
        let alias = call.results.iter().flatten().all(|id| cx.tensors[*id].alias.is_some());
        if !alias {
            cuda.call(&cx, call)?;
        }
    }
    let typed = |id: TensorId| -> Result<(String, String), Unsupported> {
        let t = &cx.tensors[id];
        Ok((element(t.dtype)?.to_owned(), t.name.clone()))
    };
    let read: Vec<(String, String)> = cx.given.iter().map(|g| typed(g.tensor)).collect::<Result<_, _>>()?;
    let written: Vec<(String, String)> = results.iter().map(|id| typed(*id)).collect::<Result<_, _>>()?;
    let name = if graph.name.is_empty() { "exported module" } else { &graph.name };
    // A comment must end with its line.
    let head: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || " _-.,()".contains(*c)).collect();
    let head = format!("{head}: one plain kernel per call, generated.");
    let cuda = cuda.finish(&head, &read, &written);
    let slug: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    Ok(GeneratedProblem {
        slug,
        toml: toml(&cx, name, &reference, &results),
        launches: cuda.matches("<<<").count(),
        cuda,
        reference,
        sources: cx.given.iter().map(|g| (cx.tensors[g.tensor].name.clone(), g.target.clone())).collect(),
        outputs: results.iter().map(|id| cx.tensors[*id].name.clone()).collect(),
        fitted: cx.given.iter().filter(|g| g.fitted).map(|g| cx.tensors[g.tensor].name.clone()).collect(),
    })
}

/// The program as lines.
fn reference(cx: &Cx<'_>) -> String {
    cx.calls.iter().fold(String::new(), |mut out, call| {
        let _ = writeln!(out, "{}", line(cx, call));
        out
    })
}

fn line(cx: &Cx<'_>, call: &Call) -> String {
    let mut args = Vec::new();
    let mut named = false;
    for (p, a) in call.op.params.iter().zip(&call.args) {
        match a {
            // By position as far as tensors go; then by name, which says what a number is.
            Some(a @ (Arg::Tensor(_) | Arg::Tuple(_))) if !named && p.default.is_none() => {
                args.push(shown(cx, a))
            }
            Some(a) => {
                named = true;
                args.push(format!("{}={}", p.name, shown(cx, a)));
            }
            None => named = true,
        }
    }
    let value = format!("{}({})", call.op.name, args.join(", "));
    let of = |id: TensorId| cx.tensors[id].name.clone();
    match call.results.as_slice() {
        [Some(a), Some(b)] => format!("{}, {} = {value}", of(*a), of(*b)),
        [Some(a), None] => format!("{} = {value}[0]", of(*a)),
        [Some(a)] => format!("{} = {value}", of(*a)),
        _ => String::new(),
    }
}

fn shown(cx: &Cx<'_>, a: &Arg) -> String {
    match a {
        Arg::Tensor(id) => cx.tensors[*id].name.clone(),
        Arg::Number(n) => text::python(*n),
        Arg::Text(s) => format!("'{}'", s.replace(['\'', '\\', '\n'], " ")),
        Arg::None => "None".to_owned(),
        Arg::Tuple(all) => {
            let items: Vec<String> = all.iter().map(|a| shown(cx, a)).collect();
            format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
        }
    }
}

fn quoted(s: &str) -> String {
    toml::Value::String(s.to_owned()).to_string()
}

fn toml(cx: &Cx<'_>, name: &str, reference: &str, results: &[TensorId]) -> String {
    let shape = |id: TensorId| {
        let all: Vec<String> = cx.tensors[id].shape.iter().map(u64::to_string).collect();
        format!("[{}]", all.join(", "))
    };
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "name = {}", quoted(name));
    let _ = writeln!(out, "level = {}\nid = {}", cx.graph.level, cx.graph.id);
    let _ = writeln!(out, "techniques = [\"one plain kernel per call\"]");
    let mut notes = "Generated from the module's graph at one set of extents, in numbers.".to_owned();
    let fitted: Vec<&str> =
        cx.given.iter().filter(|g| g.fitted).map(|g| cx.tensors[g.tensor].name.as_str()).collect();
    if !fitted.is_empty() {
        let _ = write!(notes, " Initialisers fitted to the module's values: {}.", fitted.join(", "));
    }
    if cx.given.iter().any(|g| g.target.starts_with("random:")) {
        notes.push_str(" What the forward pass draws at random is an input.");
    }
    if !cx.graph.cast_integers {
        notes.push_str(" Integer inputs stay integers: cast to float32, as the official check casts them, the module refuses them.");
    }
    let _ = writeln!(out, "notes = {}", quoted(&notes));
    let names: Vec<String> = results.iter().map(|id| quoted(&cx.tensors[*id].name)).collect();
    let _ = writeln!(out, "outputs = [{}]", names.join(", "));
    let _ = writeln!(out, "reference = '''\n{reference}'''");
    for g in &cx.given {
        let t = &cx.tensors[g.tensor];
        let _ = writeln!(out, "\n[[inputs]]\nname = {}", quoted(&t.name));
        if g.parameter {
            out.push_str("kind = \"parameter\"\n");
        }
        let _ = writeln!(out, "dtype = \"{}\"\nshape = {}", t.dtype, shape(g.tensor));
        let _ = writeln!(out, "init = {}", quoted(&g.init));
        if let Some(s) = &g.structure {
            let _ = writeln!(out, "structure = {}", quoted(s));
        }
    }
    out.push_str("\n[output_shapes]\n");
    for id in results {
        let _ = writeln!(out, "{} = {}", cx.tensors[*id].name, shape(*id));
    }
    out
}
