//! Names by which a user chooses problems: one that stands for nothing is a mistake, not an empty choice.

use assay_ops::near::near;

use crate::Problem;

/// Near names in a message.
const SHOWN: usize = 6;

/// Checks that every operator is one that a problem of these has or the reference language knows, and that every text is
/// part of a technique of one of these. Letter case does not matter.
///
/// # Errors
/// In words, the first that is neither, with names near it.
pub fn known_names(problems: &[Problem], operators: &[String], techniques: &[String]) -> Result<(), String> {
    let named = || problems.iter().flat_map(|p| p.operators.iter().map(String::as_str));
    for operator in operators {
        let known = || named().chain(assay_ops::OPS.iter().map(|op| op.name));
        if !known().any(|k| k.to_lowercase() == operator.to_lowercase()) {
            let message = format!("no problem's reference calls `{operator}`");
            return Err(message + &hint(&near(operator, named())));
        }
    }
    for text in techniques {
        let lower = text.to_lowercase();
        let known = || problems.iter().flat_map(|p| p.techniques.iter().map(String::as_str));
        if !known().any(|k| k.to_lowercase().contains(&lower)) {
            let message = format!("no substrate uses a technique with `{text}` in its name");
            return Err(message + &hint(&near(text, known())));
        }
    }
    Ok(())
}

fn hint(near: &[&str]) -> String {
    let names: Vec<String> = near.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => "; `assay problems --json` has the names of each".to_owned(),
        1 => format!("; near it is {}", names[0]),
        _ => format!("; near it are {}", names.join(", ")),
    }
}
