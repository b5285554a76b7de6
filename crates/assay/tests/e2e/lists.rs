//! Lists: what there is, as JSON for programs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{assay, repository, widest};

fn list(args: &[&str]) -> Vec<Value> {
    let answer = assay(args).exits(0);
    match answer.json() {
        Value::Array(rows) => rows,
        other => panic!("no array: {other}"),
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {row}"))
}

#[test]
fn mutators_lists_every_rule_once_in_seven_families() {
    let rows = list(&["mutators", "--json"]);
    let ids: BTreeSet<&str> = rows.iter().map(|r| text(r, "id")).collect();
    assert_eq!(ids.len(), rows.len(), "ids are unique");
    assert!(rows.len() >= 140, "{}", rows.len());
    let families: BTreeSet<&str> = rows.iter().map(|r| text(r, "family")).collect();
    let seven = ["arithmetic", "boundary", "indexing", "precision", "semantic", "synchronisation", "width"];
    assert_eq!(families, BTreeSet::from(seven));
    for r in &rows {
        assert!(!text(r, "reason").is_empty() && !text(r, "source").is_empty(), "{r}");
        assert!(!text(r, "before").is_empty() && r["after"].as_array().is_some_and(|a| !a.is_empty()), "{r}");
    }
    let known: Vec<&str> = assay_mutate::RULES.iter().map(|r| r.info().id).collect();
    assert_eq!(rows.iter().map(|r| text(r, "id")).collect::<Vec<_>>(), known);
}

#[test]
fn ceilings_are_magnitudes_between_which_validity_ends() {
    // Prefix sums of mixed signs pass near zero; sums of one sign do not.
    let rows = list(&["problems", "--ceilings", "--problems", "level1/92_*", "--json"]);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let mixed = &row["ceilings"]["sign_mixed"];
    let (valid, invalid) = (mixed["valid"].as_f64().unwrap(), mixed["invalid"].as_f64().unwrap());
    assert!(valid < invalid && invalid < 1.2 * valid, "{row}");
    assert_eq!(row["ceilings"]["same_sign"]["kind"], "above", "{row}");
    assay(&["problems", "--ceilings", "--verify"]).exits(2).says(&["--ceilings", "--verify"]);
    assay(&["problems", "--ceilings", "--problems", "level1/92_*", "--level", "2"])
        .exits(2)
        .says(&["no ceiling to find"]);
}

#[test]
fn mutants_have_ids_lines_and_diffs_that_apply() {
    let rules: BTreeSet<String> =
        list(&["mutators", "--json"]).iter().map(|r| text(r, "id").to_owned()).collect();
    for folder in ["1_square_matmul", "19_relu", "23_softmax", "57_conv_transpose_2d"] {
        let file = repository(&format!("problems/level1/{folder}/kernel.cu"));
        let source = std::fs::read_to_string(&file).unwrap();
        let rows = list(&["mutate", file.to_str().unwrap(), "--json"]);
        assert!(rows.len() > 20, "{folder}: {}", rows.len());
        let ids: BTreeSet<&str> = rows.iter().map(|r| text(r, "id")).collect();
        assert_eq!(ids.len(), rows.len(), "{folder}: ids are unique");
        for r in &rows {
            assert!(rules.contains(text(r, "rule")), "{r}");
            let line = usize::try_from(r["line"].as_u64().unwrap()).unwrap();
            assert!(line >= 1 && line <= source.lines().count(), "{r}");
            assert!(text(r, "name").starts_with(&format!("kernel.cu:{line}:")), "{r}");
            assert_ne!(patched(&source, text(r, "diff")), source, "{r}");
        }
        assert_eq!(rows, list(&["mutate", file.to_str().unwrap(), "--json"]), "twice the same");
    }
}

/// The source with a unified diff applied; every line that the diff keeps or removes must be there.
fn patched(source: &str, diff: &str) -> String {
    let old: Vec<&str> = source.lines().collect();
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    for line in diff.lines().skip(2) {
        if let Some(head) = line.strip_prefix("@@ -") {
            let start: usize = head.split([',', ' ']).next().unwrap().parse().unwrap();
            out.extend(&old[at..start - 1]);
            at = start - 1;
        } else if let Some(added) = line.strip_prefix('+') {
            out.push(added);
        } else if let Some(kept) = line.strip_prefix([' ', '-']) {
            assert_eq!(old[at], kept, "{diff}");
            if line.starts_with(' ') {
                out.push(kept);
            }
            at += 1;
        }
    }
    out.extend(&old[at..]);
    out.join("\n")
}

#[test]
fn one_rule_alone_gives_its_share_of_the_list() {
    let file = repository("problems/level1/19_relu/kernel.cu");
    let file = file.to_str().unwrap();
    let all = list(&["mutate", file, "--json"]);
    let rules: BTreeSet<&str> = all.iter().map(|r| text(r, "rule")).collect();
    let mut sum = 0;
    for rule in rules {
        let alone = list(&["mutate", file, "--rule", rule, "--json"]);
        let share: Vec<&Value> = all.iter().filter(|r| r["rule"] == rule).collect();
        assert_eq!(alone.iter().collect::<Vec<_>>(), share, "{rule}");
        sum += alone.len();
    }
    assert_eq!(sum, all.len());
    let page = assay(&["mutate", file]).exits(0).stdout;
    assert!(page.ends_with(&format!("{} mutants\n", all.len())), "{page}");
}

#[test]
fn the_fourteen_problems_have_both_extents() {
    let rows = list(&["problems", "--json"]);
    let keys: BTreeSet<(u64, u64)> =
        rows.iter().map(|r| (r["level"].as_u64().unwrap(), r["id"].as_u64().unwrap())).collect();
    let first = [1, 4, 19, 23, 26, 36, 40, 42, 47, 51, 57, 63, 89].map(|id| (1, id));
    assert!(keys.is_superset(&BTreeSet::from(first)) && keys.contains(&(2, 12)), "{keys:?}");
    for r in &rows {
        let always = r["degenerate"]["inputs"] == "any";
        assert_eq!(r["refereeable"], !always, "{r}");
        let (official, desk) = (r["official"].as_object().unwrap(), r["desk"].as_object().unwrap());
        assert!(official.keys().eq(desk.keys()) && !desk.is_empty(), "{r}");
        assert!(desk.iter().all(|(k, v)| v.as_u64() > Some(0) && v.as_u64() <= official[k].as_u64()), "{r}");
    }
    assert_eq!(
        list(&["problems", "--level", "2", "--json"]).len(),
        rows.iter().filter(|r| r["level"] == 2).count()
    );
}

#[test]
fn filters_leave_the_problems_that_fit_them_all() {
    let has = |r: &Value, key: &str, fits: &dyn Fn(&str) -> bool| {
        r[key].as_array().unwrap().iter().any(|v| fits(v.as_str().unwrap()))
    };
    type Fits<'a> = Box<dyn Fn(&Value) -> bool + 'a>;
    let softmax = |r: &Value| has(r, "operators", &|o| o == "softmax");
    let shuffle = |r: &Value| has(r, "techniques", &|t| t.to_lowercase().contains("shuffle"));
    let cases: [(&[&str], Fits<'_>); 6] = [
        (&["--operator", "Softmax"], Box::new(softmax)),
        (&["--technique", "SHUFFLE"], Box::new(shuffle)),
        (&["--operator", "softmax", "--technique", "shuffle"], Box::new(|r| softmax(r) && shuffle(r))),
        (
            &["--operator", "softmax", "--operator", "conv3d"],
            Box::new(|r| softmax(r) && has(r, "operators", &|o| o == "conv3d")),
        ),
        (&["--refereeable", "no"], Box::new(|r| r["refereeable"] == false)),
        (
            &["--refereeable", "yes", "--level", "2"],
            Box::new(|r| r["refereeable"] == true && r["level"] == 2),
        ),
    ];
    let all = list(&["problems", "--json"]);
    for (filters, fits) in cases {
        let got = list(&[&["problems", "--json"], filters].concat());
        let want: Vec<&Value> = all.iter().filter(|r| fits(r)).collect();
        assert!(!want.is_empty() && want.len() < all.len(), "{filters:?}");
        assert_eq!(got.iter().collect::<Vec<_>>(), want, "{filters:?}");
    }
    // Names that exist but fit nothing together leave nothing.
    let none = ["--level", "1", "--operator", "softmax", "--operator", "conv3d"];
    assert_eq!(list(&[&["problems", "--json"], &none[..]].concat()), Vec::<Value>::new());
    assay(&[&["problems", "--verify"], &none[..]].concat()).exits(2).says(&["nothing to verify"]);
    // Names that stand for nothing do not; an operator has its whole name.
    let near = ["no problem's reference calls `soft`", "`softmax`", "`softplus`"];
    assert_eq!(assay(&["problems", "--operator", "soft"]).exits(2).says(&near).stdout, "");
    assay(&["problems", "--operator", "sofmtax", "--json"]).exits(2).says(&["near it is `softmax`"]);
    assay(&["problems", "--operator", "nosuch"]).exits(2).says(&["`nosuch`", "`assay problems --json`"]);
    assay(&["problems", "--technique", "nosuch"]).exits(2).says(&["no substrate", "`nosuch`"]);
    // An operator of the reference language that no problem calls is no mistake.
    assert_eq!(list(&["problems", "--json", "--operator", "floor_divide"]), Vec::<Value>::new());
    assay(&["problems", "--refereeable", "maybe"]).exits(2).says(&["yes", "no"]);
}

#[test]
fn a_sample_is_spread_over_levels_operators_and_techniques() {
    let all = list(&["problems", "--json"]);
    let sample = list(&["problems", "--json", "--sample", "40"]);
    assert_eq!(sample, list(&["problems", "--json", "--sample", "40"]), "twice the same");
    assert_eq!(sample.len(), 40);
    assert!(sample.iter().all(|r| all.contains(r)));
    let level2 = sample.iter().filter(|r| r["level"] == 2).count();
    assert_eq!(level2, 20, "levels in proportion");
    let operators = |rows: &[Value]| -> BTreeSet<String> {
        let of = |r: &Value| r["operators"].as_array().unwrap().clone();
        rows.iter().flat_map(of).map(|o| o.as_str().unwrap().to_owned()).collect()
    };
    let (some, every) = (operators(&sample).len(), operators(&all).len());
    assert!(some * 10 >= every * 7, "{some} of {every} operators in a fifth of the problems");
    assert_eq!(list(&["problems", "--json", "--sample", "1000"]).len(), all.len());
}

#[test]
fn the_table_of_problems_fits_eighty_columns_and_a_short_one_has_the_notes() {
    let page = assay(&["problems"]).exits(0).stdout;
    assert!(widest(&page).0 <= 80, "{:?}", widest(&page));
    assert!(page.ends_with("200 problems\n") && !page.contains("notes: "), "{page}");
    let page = assay(&["problems", "--problems", "2/80", "--problems", "1/2"]).exits(0).stdout;
    assert!(widest(&page).0 <= 80, "{:?}", widest(&page));
    for words in
        ["K=8192>2048", "K reduces over 2048 for 8192", "notes: ", "degenerate: zeros pass on any input"]
    {
        assert!(
            page.split_whitespace().collect::<Vec<_>>().join(" ").contains(words),
            "no `{words}` in {page}"
        );
    }
    assert!(page.ends_with("2 problems\n"), "{page}");
}

#[test]
fn mutants_of_shared_code_say_where_it_stands() {
    let file = repository("problems/level2/24_conv_3d_min_softmax/kernel.cu");
    let rows = list(&["mutate", file.to_str().unwrap(), "--json"]);
    let shared = std::fs::read_to_string(repository("problems/lib/warp_max.cuh")).unwrap();
    let of =
        |end: &str| rows.iter().filter(|r| text(&r["origin"], "file").ends_with(end)).collect::<Vec<_>>();
    let inside = of("lib/warp_max.cuh");
    assert!(inside.len() > 3, "{}", inside.len());
    for r in inside {
        let line = usize::try_from(r["origin"]["line"].as_u64().unwrap()).unwrap();
        let mutated = shared.lines().nth(line - 1).unwrap();
        assert!(text(r, "diff").contains(&format!("-{mutated}\n")), "{r}: line {line} is `{mutated}`");
    }
    assert!(of("24_conv_3d_min_softmax/kernel.cu").len() > 20);
    let page = assay(&["mutate", file.to_str().unwrap()]).exits(0).stdout;
    assert!(page.contains("lib/warp_max.cuh:"), "{page}");
}

#[test]
fn the_eight_protocols_state_inputs_and_tolerances() {
    let rows = list(&["protocols", "--json"]);
    let named = |name: &str| rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for (name, tolerance, inputs) in [
        ("kernelbench-2025", 1e-2, 5),
        ("kernelbench", 1e-4, 5),
        ("kbv-inputs", 1e-2, 4),
        ("kbv", 1e-3, 4),
        ("ci-fuzz", 1e-2, 4),
        ("robust-kbench", 1e-5, 5),
    ] {
        let r = named(name);
        assert_eq!((r["atol"].as_f64(), r["rtol"].as_f64()), (Some(tolerance), Some(tolerance)), "{r}");
        assert_eq!(r["inputs"].as_array().map(Vec::len), Some(inputs), "{r}");
    }
    assert!(named("targeted-all")["targeted"] == true && named("targeted-2")["suite_budget"] == 2);
    assert_eq!(rows.len(), 8);
    let shipped = named("targeted-2")["problems"].as_object().expect("inputs per problem");
    assert_eq!(shipped.len(), 14, "the problems of the default audit, from which it is derived");
    for key in shipped.keys() {
        let inputs = shipped.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        assert!(inputs == 1 || inputs == 2, "{key}: {inputs}");
    }
}
