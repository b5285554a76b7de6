//! `assay problems --ceilings`: how large inputs may be.

use assay_campaign::CampaignError;
use assay_campaign::ceilings::{Ceiling, Ceilings, ceilings};
use assay_problems::Problem;
use rayon::prelude::*;
use serde_json::json;

use crate::cli::Common;
use crate::commands::{audit, list, tools};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Bar;

/// Finds and prints the ceilings of these problems. A problem whose inputs cannot be made is told with its reason, and
/// the others all the same.
///
/// # Errors
/// Nothing to look at; standard output that cannot be written.
pub fn print(common: &Common, all: &[Problem]) -> Result<Exit, Failure> {
    if all.is_empty() {
        return Err(Failure::bad_input("no problem fits; there is no ceiling to find"));
    }
    let bar = Bar::new(common.quiet || common.json);
    bar.begin("ceilings", all.len() as u64);
    let done = std::sync::atomic::AtomicU64::new(0);
    let found: Vec<Result<Ceilings, CampaignError>> = tools::pool(common)?.install(|| {
        let one = |p: &Problem| {
            let found = ceilings(p);
            let n = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            bar.at(n, all.len() as u64);
            found
        };
        all.par_iter().map(one).collect()
    });
    bar.finish();
    let failed = found.iter().filter_map(|f| f.as_ref().err()).map(|e| audit::failure(e).exit);
    let exit = failed.fold(Exit::Fine, Exit::and);
    if common.json {
        let records = all.iter().zip(&found).map(|(p, f)| {
            json!({
                "level": p.level, "id": p.id, "name": p.name,
                "ceilings": f.as_ref().ok(), "reason": f.as_ref().err().map(ToString::to_string),
            })
        });
        output::json(&records.collect::<Vec<_>>())?;
        return Ok(exit);
    }
    let rows = all.iter().zip(&found).map(|(p, f)| {
        let cells = match f {
            Ok(c) => [magnitude(c.sign_mixed), magnitude(c.same_sign)],
            Err(e) => [e.to_string(), String::new()],
        };
        [p.key(), p.name.clone()].into_iter().chain(cells).collect()
    });
    let mut text = list::table(&["Id", "Problem", "Sign-mixed", "Same-sign"], rows);
    text.push_str(
        "The largest magnitude, up to a factor of 1.1, on which float32 evaluations in other orders\n\
         stay within 1e-2: the standard deviation of normal inputs, the largest value of inputs of\n\
         one sign. At desk extents: a larger output has more elements near zero, and a lower\n\
         ceiling.\n",
    );
    output::text(&text)?;
    Ok(exit)
}

/// A ceiling in a cell.
fn magnitude(ceiling: Ceiling) -> String {
    match ceiling {
        Ceiling::Below { lo } => format!("below {lo}"),
        Ceiling::Between { valid, .. } => format!("{valid:.3}"),
        Ceiling::Above { hi } => format!("above {hi}"),
    }
}
