//! Protocol files: the shipped ones, and what is wrong with others.

use std::collections::BTreeSet;
use std::path::Path;

use assay_measure::{
    BUILTIN, MeasureError, PROTOCOL_FILES, Protocol, Tolerance, builtin, check_recipe_text, published,
};

#[test]
fn the_shipped_protocols_are_those_in_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocols");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    let embedded: BTreeSet<String> = PROTOCOL_FILES.iter().map(|(f, _)| (*f).to_owned()).collect();
    assert_eq!(there, embedded);
    let protocols = builtin().unwrap();
    assert_eq!(protocols.len(), BUILTIN.len());
    for (p, name) in protocols.iter().zip(BUILTIN) {
        assert_eq!(&p.name, name);
        assert!(!p.description.is_empty() && !p.source.is_empty(), "{name}");
    }
}

#[test]
fn the_shipped_protocols_ask_what_the_design_says() {
    let asked = |name: &str| {
        let p = builtin().unwrap().into_iter().find(|p| p.name == name).unwrap();
        // A problem that no table names.
        let recipes = p.recipes("9/99", &["ragged".to_owned(), "official#0".to_owned()], |budget| {
            vec![format!("cover#{budget}")]
        });
        (recipes.join(" "), p.tolerance())
    };
    let official = "official#0 official#1 official#2 official#3 official#4";
    let scaled = "official#0 official*3#0 official*0.01#0 official*-1#0";
    let fuzz = "official#0 loguniform(-3,3)#1 loguniform(-3,3)#2 loguniform(-3,3)#3";
    for (name, recipes, t) in [
        ("kernelbench-2025", official, 1e-2),
        ("kernelbench", official, 1e-4),
        ("kbv-inputs", scaled, 1e-2),
        ("kbv", scaled, 1e-3),
        ("ci-fuzz", fuzz, 1e-2),
        ("targeted-2", "cover#2", 1e-2),
        // Asked once, although it is targeted as well.
        ("targeted-all", "official#0 ragged", 1e-2),
    ] {
        assert_eq!(asked(name), (recipes.to_owned(), Tolerance::both(t)), "{name}");
    }
}

#[test]
fn targeted_2_ships_one_or_two_inputs_for_each_problem_that_it_names() {
    let p = builtin().unwrap().into_iter().find(|p| p.name == "targeted-2").unwrap();
    assert!(!p.problems.is_empty());
    for (key, recipes) in &p.problems {
        assert!((1..=2).contains(&recipes.len()), "{key}: {recipes:?}");
        assert_eq!(p.recipes(key, &[], |_| panic!("a table leaves nothing to choose")), *recipes);
    }
}

#[test]
fn published_figures_agree_with_each_other() {
    let p = published().unwrap();
    let pipe = &p.pipeline;
    assert_eq!(pipe.distinct, pipe.generated - pipe.noncompiling - pipe.duplicate_image - pipe.equivalent);
    assert_eq!(pipe.witnessed - pipe.missed, p.official.detected);
    assert_eq!(
        assay_measure::percent(p.official.detected, pipe.witnessed),
        Some(p.official.detected_percent)
    );
    assert_eq!(assay_measure::percent(pipe.missed, pipe.witnessed), Some(pipe.missed_percent));
    // As published, the six families' counts add up to 7,362 of the 7,384.
    assert!(p.families.rows.iter().map(|f| f.witnessed).sum::<u64>() <= pipe.witnessed);
    assert_eq!(p.family("precision").unwrap().missed_percent, 78.6);
    assert_eq!(p.budget(2).unwrap().held_out, 94.8);
    assert_eq!(p.protocol("ci-fuzz").unwrap().false_kills, Some(107));
    for protocol in builtin().unwrap() {
        // The official check's own figure is the one over levels 1 and 2.
        let (Some(own), Some(row)) = (&protocol.published, p.protocol(&protocol.name)) else { continue };
        let want = if protocol.name == "kernelbench-2025" {
            p.official.detected_percent
        } else {
            row.detected_percent
        };
        assert_eq!(own.detected_percent, want, "{}", protocol.name);
        assert_eq!(own.false_kills, row.false_kills, "{}", protocol.name);
    }
}

#[test]
fn a_protocol_written_out_reads_back() {
    for mut p in builtin().unwrap() {
        assert_eq!(Protocol::parse(&p.to_toml(), "again.toml").unwrap(), p);
        p.extra_inputs = vec!["normal(1)@M=63,N=65#7".to_owned()];
        p.problems.insert(
            "1/23".to_owned(),
            vec!["official#0".to_owned(), "outlier(0.01,1000)+params#1".to_owned()],
        );
        p.problems.insert("1/4".to_owned(), vec!["official*3#0".to_owned()]);
        p.description = "quotes \" and \\ and 'both'".to_owned();
        let text = p.to_toml();
        assert_eq!(Protocol::parse(&text, "again.toml").unwrap(), p, "{text}");
        assert!(text.find("1/4").unwrap() < text.find("1/23").unwrap(), "problems in the order of numbers");
    }
}

#[test]
fn a_table_replaces_the_inputs_and_extra_inputs_stay() {
    let text = r#"
name = "mine"
inputs = ["official#0"]
extra_inputs = ["zeros"]
atol = 1
rtol = 0.5
[problems]
"1/23" = ["official#7", "zeros"]
"#;
    let p = Protocol::parse(text, "mine.toml").unwrap();
    assert_eq!((p.title.as_str(), p.atol, p.rtol), ("mine", 1.0, 0.5));
    assert_eq!(p.recipes("1/23", &[], |_| vec![]), ["official#7", "zeros"]);
    assert_eq!(p.recipes("1/24", &[], |_| vec![]), ["official#0", "zeros"]);
}

#[test]
fn another_tolerance_keeps_the_inputs_and_drops_what_was_published() {
    let kbv = &builtin().unwrap()[3];
    let loose = kbv.with_tolerance("kbv-loose", Tolerance::both(1e-1));
    assert_eq!((loose.name.as_str(), loose.atol, &loose.inputs), ("kbv-loose", 0.1, &kbv.inputs));
    assert!(kbv.published.is_some() && loose.published.is_none());
}

#[test]
fn faults_of_a_file_are_reported_with_their_place() {
    let base = "name = \"p\"\ninputs = [\"official#0\"]\natol = 1e-2\nrtol = 1e-2\n";
    // (file, line, column, part of the message)
    let table: &[(String, u32, u32, &str)] = &[
        (format!("{base}colour = 3\n"), 5, 1, "unknown field `colour`"),
        (base.replace("atol = 1e-2\n", ""), 1, 1, "missing field `atol`"),
        (base.replace("atol = 1e-2", "atol = \"x\""), 3, 8, "invalid type"),
        (base.replace("atol = 1e-2", "atol = -1.0"), 3, 8, "`atol` is -1"),
        (base.replace("rtol = 1e-2", "rtol = inf"), 4, 8, "`rtol` is inf"),
        (base.replace("\"p\"", "\"My Protocol\""), 1, 8, "no protocol name"),
        (base.replace("official#0", "official#"), 2, 11, "no seed"),
        (base.replace("[\"official#0\"]", "[\"official#0\", \"official#0\"]"), 2, 25, "stands twice"),
        (base.replace("inputs = [\"official#0\"]\n", ""), 1, 8, "asks nothing"),
        (format!("{base}suite_budget = 2\n"), 5, 16, "chooses the inputs itself"),
        (base.replace("inputs = [\"official#0\"]", "suite_budget = 0"), 2, 16, "must be 1 to"),
        (format!("{base}[problems]\n\"1-23\" = [\"official#0\"]\n"), 6, 10, "`1-23` is no problem"),
        (format!("{base}[problems]\n\"1/023\" = [\"official#0\"]\n"), 6, 11, "`1/023` is no problem"),
        (format!("{base}[problems]\n\"1/23\" = []\n"), 6, 10, "no input"),
        (format!("{base}[published]\ndetected_percent = 101.0\ndenominator = \"d\"\n"), 5, 1, "0 to 100"),
        (format!("{base}[published]\nx = 1\n"), 6, 1, "unknown field `x`"),
        ("name = \"é\" = 1".to_owned(), 1, 12, "expected"),
        (String::new(), 1, 1, "missing field `name`"),
    ];
    for (text, line, column, part) in table {
        match Protocol::parse(text, "p.toml") {
            Err(MeasureError::Protocol { file, line: l, column: c, message }) => {
                assert!(message.contains(part), "{text}\n{message}");
                assert_eq!((l, c), (*line, *column), "{text}\n{message}");
                assert_eq!(file, "p.toml");
            }
            other => panic!("{text}\n{other:?}"),
        }
    }
    let shown = Protocol::parse(&table[3].0, "p.toml").unwrap_err().to_string();
    assert!(shown.starts_with("p.toml:3:8: `atol` is -1"), "{shown}");
}

#[test]
fn recipes_have_their_grammar() {
    for good in [
        "official",
        "official#42",
        "official*3#42",
        "official*-1#0",
        "official*1e+3#0",
        "official*1e-3+params",
        "normal(1)@M=63,N=65#7",
        "outlier(0.01,1000)+params#1",
        "loguniform(-3,3)#1",
        "same-sign*0.5@K=1",
    ] {
        assert_eq!(check_recipe_text(good), Ok(()), "{good}");
    }
    for (bad, part) in [
        ("", "starts with its kind"),
        ("#3", "starts with its kind"),
        ("3x", "starts with its kind"),
        ("official #3", "cannot stand"),
        ("normal(1", "not closed"),
        ("normal((1))", "do not nest"),
        ("official#1*3", "too late"),
        ("official*3*3", "twice"),
        ("official*inf", "no scale"),
        ("official+inputs", "only `+params`"),
        ("official@M", "no list of dims"),
        ("official@M=-1", "no list of dims"),
        ("official#-1", "no seed"),
        ("official!", "no part of a recipe"),
    ] {
        let message = check_recipe_text(bad).unwrap_err();
        assert!(message.contains(part), "{bad}: {message}");
    }
}

#[test]
fn digests_of_inputs_are_kept_and_those_that_fit_no_input_are_refused_where_they_stand() {
    let sum = "0123456789abcdef".repeat(4);
    let head = "name = \"mine\"\nsuite_budget = 2\natol = 1e-2\nrtol = 1e-2\n\n[problems]\n\"1/2\" = [\"normal(1)@N=3#7\"]\n\n[digests]\n";
    let good = format!("{head}\"1/2\" = {{ \"normal(1)@N=3#7\" = \"{sum}\" }}\n");
    let p = Protocol::parse(&good, "mine.toml").unwrap();
    assert_eq!(p.digests["1/2"]["normal(1)@N=3#7"], sum);
    assert_eq!(Protocol::parse(&p.to_toml(), "again.toml").unwrap(), p);
    for (line, word) in [
        (format!("\"1/2\" = {{ \"normal(1)@N=3#7\" = \"{}\" }}", &sum[1..]), "64"),
        (format!("\"1/2\" = {{ \"normal(1)@N=3#7\" = \"{}\" }}", sum.to_uppercase()), "64"),
        (format!("\"1/2\" = {{ \"normal(1)@N=3#8\" = \"{sum}\" }}"), "normal(1)@N=3#8"),
        (format!("\"1/3\" = {{ \"normal(1)@N=3#7\" = \"{sum}\" }}"), "1/3"),
        ("\"1/3\" = {}".to_owned(), "1/3"),
        ("\"1/2\" = 7".to_owned(), "map"),
    ] {
        match Protocol::parse(&format!("{head}{line}\n"), "mine.toml") {
            Err(MeasureError::Protocol { line: at, message, .. }) => {
                assert_eq!(at, 10, "{line}: {message}");
                assert!(message.contains(word), "{line}: {message}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}
