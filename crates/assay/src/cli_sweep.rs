//! Arguments of the commands about sweeps.

use std::path::PathBuf;

use clap::Args;

/// `assay sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The operation: `bmm`, or a case of `sweeps/cases` such as `cumsum` (`all` for every case)
    #[arg(value_name = "OP")]
    pub op: String,
    /// `emulated:NAME` or `emulated:FILE.toml`, `torch`, or `kernel:FILE.cu` (a CUDA kernel on the CPU device)
    #[arg(long, value_name = "B")]
    pub backend: String,
    /// A built-in plan or a TOML file [default: standard]
    #[arg(long, value_name = "NAME|FILE")]
    pub plan: Option<String>,
    /// The device of `torch`: cpu, cuda, mps, or another string that it knows
    #[arg(long, value_name = "D", default_value = "cpu")]
    pub device: String,
    /// The Python that has PyTorch
    #[arg(long, value_name = "P", default_value = "python3")]
    pub python: PathBuf,
    /// Versions of PyTorch, each in a fresh environment made with uv, such as `2.10.0,2.14.0`
    #[arg(long, value_name = "V,…", value_delimiter = ',')]
    pub torch: Vec<String>,
    /// Only these element types: f32, f16, bf16, f64
    #[arg(long, value_name = "T,…", value_delimiter = ',')]
    pub dtype: Vec<String>,
    /// Only these layouts: contig, bT, aT, slice, offset
    #[arg(long, value_name = "L,…", value_delimiter = ',')]
    pub layout: Vec<String>,
    /// These shapes in place of the plan's: `M,K,N`, several separated by `;`
    #[arg(long, value_name = "M,K,N;…", value_delimiter = ';')]
    pub shapes: Vec<String>,
    /// These boundaries in place of the plan's: `2^31`, `2^32 bytes`, or any count
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub boundary: Vec<String>,
    /// Full comparisons compare every element, on emulated devices too
    #[arg(long)]
    pub full: bool,
    /// The run folder [default: assay-runs/sweep-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue the interrupted sweep in --out
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write a short Python file that shows the first wrong result of each kind, `repro-N.py` in the run folder
    #[arg(long)]
    pub repro: bool,
    /// Memory to reckon with; a run that may take more than 60% of it is skipped [default: what the machine has]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Seconds before a run is given up: of a sampled and of a full comparison
    #[arg(long, value_name = "S,S", default_value = "1200,3600", value_parser = parse_limits)]
    pub timeout: (u64, u64),
}

/// `assay rules`.
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// Run folders of `assay sweep`, or files of JSON lines; several are taken together
    #[arg(value_name = "RUN|JSONL", required = true)]
    pub runs: Vec<PathBuf>,
    /// Score the rules in this TOML file in place of learning
    #[arg(long, value_name = "FILE")]
    pub apply: Option<PathBuf>,
    /// Write the rules that were learned, in the form that --apply reads
    #[arg(long, value_name = "FILE", conflicts_with = "apply")]
    pub save: Option<PathBuf>,
}

/// `assay guard-eval`.
#[derive(Debug, Args)]
pub struct GuardEvalArgs {
    /// Run folders of `assay sweep`, or files of JSON lines
    #[arg(value_name = "RUN|JSONL", required = true)]
    pub runs: Vec<PathBuf>,
    /// Elements from which on the guard stops an operation
    #[arg(long, value_name = "N", default_value = "2^32", value_parser = parse_count)]
    pub limit: u64,
}

fn parse_count(text: &str) -> Result<u64, String> {
    assay_sweep::condition::parse_count(text).ok_or_else(|| format!("`{text}` is not a count such as 2^32"))
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len() {
        n if n == text.len() => (text, 1),
        n => {
            let unit = match &text[n..] {
                "K" | "KiB" => 1u64 << 10,
                "M" | "MiB" => 1 << 20,
                "G" | "GiB" => 1 << 30,
                other => return Err(format!("`{other}` is not a unit; there are KiB, MiB, GiB")),
            };
            (&text[..n], unit)
        }
    };
    parse_count(number)?.checked_mul(unit).ok_or_else(|| format!("`{text}` does not fit 64 bits"))
}

fn parse_limits(text: &str) -> Result<(u64, u64), String> {
    let number = |s: &str| s.trim().parse::<u64>().ok().filter(|&n| n > 0);
    let parts: Vec<&str> = text.split(',').collect();
    match parts.as_slice() {
        [a, b] => number(a).zip(number(b)),
        [a] => number(a).zip(number(a)),
        _ => None,
    }
    .ok_or_else(|| format!("`{text}` is not seconds such as 1200,3600"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_limits_are_read() {
        assert_eq!(parse_bytes("24GiB"), Ok(24 << 30));
        assert_eq!(parse_bytes("2^34"), Ok(1 << 34));
        assert!(parse_bytes("4 cows").is_err() && parse_bytes("2^63GiB").is_err());
        assert_eq!(parse_limits("5"), Ok((5, 5)));
        assert_eq!(parse_limits("5,60"), Ok((5, 60)));
        assert!(parse_limits("0,1").is_err() && parse_limits("1,2,3").is_err());
    }
}
