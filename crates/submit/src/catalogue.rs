//! A problem of the catalogue as a problem file, for those who have no checkout of the benchmark.
//!
//! Only the functional form is determinable: the catalogue knows what is computed from inputs and parameters, and not
//! which init arguments a module takes. A problem with parameters, or with inputs that only the catalogue's own
//! generators make, has no such file.

use assay_problems::{Init, InputKind, Problem, Structure};
use assay_tensor::DType;

/// The text of a file with `Model`, `get_inputs` and `get_init_inputs`.
///
/// # Errors
/// What the file cannot say, in one sentence.
pub fn problem_file(problem: &Problem) -> Result<String, String> {
    let key = problem.key();
    if problem.inputs.iter().any(|i| i.kind == InputKind::Parameter) {
        return Err(format!(
            "problem {key} has parameters, whose init arguments the catalogue does not know; give the benchmark's own \
             files with --kernelbench, or one with --problem FILE.py"
        ));
    }
    let mut text = String::from("import torch\nimport torch.nn as nn\n\n");
    text.push_str(
        "NAMES = {\n    \"view\": lambda x, size: x.view(size),\n    \"expand\": lambda x, size: x.expand(size),\n    \
         \"masked_fill\": lambda x, mask, value: x.masked_fill(mask, value),\n    \
         \"einsum\": lambda equation, operands: torch.einsum(equation, *operands),\n}\n\n\n",
    );
    text.push_str(
        "def function(name):\n    if name in NAMES:\n        return NAMES[name]\n    \
         return getattr(torch.nn.functional, name, None) or getattr(torch, name)\n\n\n",
    );
    for dim in &problem.dims {
        text.push_str(&format!("{} = {}\n", dim.name, dim.official));
    }
    for (name, value) in &problem.scalars {
        text.push_str(&format!("{name} = {}\n", number(*value)));
    }
    let names: Vec<&str> = problem.inputs.iter().map(|i| i.name.as_str()).collect();
    text.push_str(&format!("\n\nclass Model(nn.Module):\n    def forward(self, {}):\n", names.join(", ")));
    for (name, expression) in &problem.derived {
        // Floor division, as the catalogue has it.
        text.push_str(&format!("        {name} = {}\n", expression.to_string().replace('/', "//")));
    }
    for function in functions(&problem.reference_text) {
        text.push_str(&format!("        {function} = function({function:?})\n"));
    }
    for line in problem.reference_text.lines().filter(|l| !l.trim().is_empty()) {
        text.push_str(&format!("        {}\n", line.trim()));
    }
    text.push_str(&format!("        return {}\n\n\ndef get_inputs():\n", problem.outputs.join(", ")));
    for (name, expression) in &problem.derived {
        text.push_str(&format!("    {name} = {}\n", expression.to_string().replace('/', "//")));
    }
    for input in &problem.inputs {
        let shape: Vec<String> = input.shape.iter().map(|e| e.to_string().replace('/', "//")).collect();
        let shape = format!("({},)", shape.join(", "));
        let made = made(&input.init, &shape)
            .ok_or_else(|| format!("problem {key}: only the catalogue makes its input `{}`", input.name))?;
        let made = match input.structure {
            Some(Structure::Upper) => format!("torch.triu({made})"),
            Some(Structure::Lower) => format!("torch.tril({made})"),
            Some(Structure::Symmetric) => {
                text.push_str(&format!("    {} = {made}\n", input.name));
                format!("({0} + {0}.mT) / 2", input.name)
            }
            None => made,
        };
        let cast = match input.dtype {
            DType::F32 => String::new(),
            DType::I64 => ".long()".to_owned(),
            DType::I32 => ".int()".to_owned(),
            DType::Bool => ".bool()".to_owned(),
            other => return Err(format!("problem {key} has an input of {other}")),
        };
        text.push_str(&format!("    {} = ({made}){cast}\n", input.name));
    }
    text.push_str(&format!("    return [{}]\n\n\ndef get_init_inputs():\n    return []\n", names.join(", ")));
    Ok(text)
}

fn number(v: f64) -> String {
    if v.fract() == 0.0 && v.abs() < 9e15 { format!("{}", v as i64) } else { format!("{v:?}") }
}

/// The functions that a reference program calls.
fn functions(program: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in program.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let starts = word.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        if c == '(' && starts && !out.contains(&word) {
            out.push(word.clone());
        }
        word.clear();
    }
    out
}

fn made(init: &Init, shape: &str) -> Option<String> {
    Some(match init {
        Init::Rand => format!("torch.rand{shape}"),
        Init::Randn => format!("torch.randn{shape}"),
        Init::Zeros => format!("torch.zeros{shape}"),
        Init::Ones => format!("torch.ones{shape}"),
        Init::Uniform(lo, hi) => format!("torch.rand{shape} * (({hi}) - ({lo})) + ({lo})"),
        Init::Normal(mean, std) => format!("torch.randn{shape} * ({std}) + ({mean})"),
        Init::Full(v) => format!("torch.full({shape}, float({v}))"),
        Init::Randint(lo, hi) => format!("torch.randint({lo}, {hi}, {shape})"),
        Init::Bernoulli(p) => format!("torch.bernoulli(torch.full({shape}, float({p})))"),
        Init::Sign => format!("torch.randint(0, 2, {shape}) * 2.0 - 1.0"),
        Init::Factor(inner) => format!("{} * torch.rand(())", made(inner, shape)?),
        Init::Softmax(inner) => format!("torch.softmax({}, dim=-1)", made(inner, shape)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_program_are_found_once() {
        assert_eq!(functions("h = relu(x)\ny = sum(relu(h) * (2 + 3), dim=1)"), ["relu", "sum"]);
    }

    #[test]
    fn problems_without_parameters_have_a_file_and_others_say_why_not() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems/level1");
        let file = |name: &str| problem_file(&assay_problems::load(dir.join(name)).unwrap());
        let relu = file("19_relu").unwrap();
        assert!(relu.contains("def forward(self, x):") && relu.contains("y = relu(x)"), "{relu}");
        assert!(relu.contains("D = 393216"), "{relu}");
        assert!(file("40_layer_norm").unwrap_err().contains("parameters"));
    }
}
