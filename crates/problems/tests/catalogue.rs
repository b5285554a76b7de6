//! Every problem of the catalogue loads, plans and makes its inputs.

use std::collections::BTreeSet;
use std::path::Path;

use assay_ops::Variant;
use assay_problems::{
    Extents, Problem, Recipe, Root, SKELETON, Structure, discover, search_recipes, targeted_recipes,
};

fn all() -> Vec<Problem> {
    let root = Root::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems"));
    discover::<&str>(&[], &root).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_skeleton_is_there_and_every_problem_loads() {
    let keys: BTreeSet<(u32, u32)> = all().iter().map(|p| (p.level, p.id)).collect();
    for key in SKELETON {
        assert!(keys.contains(&key), "{key:?} is missing");
    }
}

#[test]
fn the_embedded_catalogue_is_the_folder() {
    let embedded = discover::<&str>(&[], &Root::Embedded).unwrap_or_else(|e| panic!("{e}"));
    let disk = all();
    assert_eq!(embedded.len(), disk.len());
    for (a, b) in embedded.iter().zip(&disk) {
        assert_eq!((a.key(), &a.toml_source, &a.kernel_source), (b.key(), &b.toml_source, &b.kernel_source));
    }
}

#[test]
fn what_desk_extents_lose_stands_in_the_notes() {
    let silent: Vec<String> = all()
        .iter()
        .flat_map(|p| p.unsaid_losses().into_iter().map(|l| format!("{}: {l}", p.key())))
        .collect();
    assert!(silent.is_empty(), "\n{}", silent.join("\n"));
}

#[test]
fn losses_are_read_off_the_shapes() {
    let of = |key: &str| {
        let p = all().into_iter().find(|p| p.key() == key).unwrap();
        p.desk_losses().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // A free dim that stays a multiple loses nothing; a contracted one does, and so does a remainder.
    assert_eq!(of("1/2"), ["K reduces over 2048 for 8192"]);
    assert_eq!(of("1/23"), Vec::<String>::new());
    assert_eq!(of("1/45")[..2], ["H has a rest by 4", "W has a rest by 4"].map(str::to_owned));
    assert!(of("2/67").contains(&"H reduces over 20 for 256".to_owned()), "{:?}", of("2/67"));
}

#[test]
fn every_launcher_plans_at_every_extent_and_lists_what_it_launches() {
    for p in all() {
        let mut cases = vec![p.dims_with(&Default::default(), Extents::Official).unwrap()];
        cases.push(p.dims_with(&Default::default(), Extents::Desk).unwrap());
        cases.extend(p.ragged.iter().map(|s| p.dims_with(s, Extents::Desk).unwrap()));
        for dims in cases {
            let plan = p.plan(&dims).unwrap_or_else(|e| panic!("{} at {dims:?}: {e}", p.key()));
            assert!(plan.launches().count() > 0, "{}", p.key());
            assert!(plan.notes.is_empty(), "{} at {dims:?}: {:?}", p.key(), plan.notes);
            for l in plan.launches() {
                assert!(p.host.kernels().contains(&l.kernel), "{}: {}", p.key(), l.kernel);
                let grid_fits = l.grid[0] >= 1 && l.grid[1] <= 65_535 && l.grid[2] <= 65_535;
                assert!(grid_fits && l.block.iter().product::<u64>() <= 1024, "{}: {l:?}", p.key());
            }
        }
    }
}

#[test]
fn device_sources_keep_kernels_and_lose_the_launcher() {
    for p in all() {
        let d = p.host.device_source();
        assert_eq!(d.len(), p.kernel_source.len());
        assert!(d.contains("__global__") && !d.contains("<<<"), "{}", p.key());
        for (a, b) in d.lines().zip(p.kernel_source.lines()) {
            assert!(a.trim().is_empty() || a.trim() == b.trim() || b.contains(a.trim()), "{}: {a}", p.key());
        }
    }
}

#[test]
fn targeted_recipes_are_distinct_legal_and_evaluate() {
    for p in all() {
        let recipes = targeted_recipes(&p);
        assert!((11..=23).contains(&recipes.len()), "{}: {}", p.key(), recipes.len());
        let texts: BTreeSet<String> = recipes.iter().map(|(r, _)| r.to_string()).collect();
        assert_eq!(texts.len(), recipes.len());
        assert!(
            recipes.iter().filter(|(r, _)| !r.dims.is_empty()).count() >= 3.min(p.ragged.len()),
            "{}",
            p.key()
        );
        for (r, why) in &recipes {
            assert_eq!(Recipe::parse(&r.to_string()).unwrap(), *r);
            assert!(why.len() > 5);
            let inputs = p.make_inputs(r, Extents::Desk).unwrap_or_else(|e| panic!("{}: {r}: {e}", p.key()));
            for (name, t) in &inputs {
                assert!(t.to_f64_vec().iter().all(|v| v.is_finite()), "{}: {r}: {name}", p.key());
            }
        }
        // The smallest ragged shape goes through the reference.
        let shape = p.ragged.iter().min_by_key(|s| s.values().product::<u64>()).unwrap();
        let r = Recipe::official(1).with_dims(shape.clone());
        let dims = p.dims_for(&r, Extents::Desk).unwrap();
        let inputs = p.make_inputs(&r, Extents::Desk).unwrap();
        let out =
            p.reference.evaluate(&inputs, &p.reference_scalars(&dims), &p.outputs, &Variant::official());
        let out = out.unwrap_or_else(|e| panic!("{}: {r}: {e}", p.key()));
        assert_eq!(out.keys().cloned().collect::<Vec<_>>(), p.outputs);
    }
}

#[test]
fn search_recipes_are_legal_and_do_not_depend_on_the_budget() {
    for p in all() {
        let many = search_recipes(&p, 120);
        assert_eq!(many.len(), 120, "{}", p.key());
        assert_eq!(search_recipes(&p, 40), many[..40]);
        let shapes: BTreeSet<String> = many.iter().map(|r| format!("{:?}", r.dims)).collect();
        assert!(shapes.len() > 10, "{}: {shapes:?}", p.key());
        for r in &many {
            let dims = p.dims_for(r, Extents::Desk).unwrap();
            p.plan(&dims).unwrap_or_else(|e| panic!("{}: {r}: {e}", p.key()));
        }
    }
}

#[test]
fn patterns_name_problems_in_every_documented_way() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../problems");
    let root = Root::Folder(folder.clone());
    let keys = |patterns: &[&str], root: &Root| {
        discover(patterns, root)
            .map(|v| v.iter().map(Problem::key).collect::<Vec<_>>())
            .map_err(|e| e.to_string())
    };
    for r in [&root, &Root::Embedded] {
        assert_eq!(keys(&["level1/19*"], r).unwrap(), ["1/19"]);
        assert_eq!(keys(&["1/23", "level1/23_softmax/", "2/12"], r).unwrap(), ["1/23", "2/12"]);
        assert!(keys(&["level1"], r).unwrap().len() >= 13);
        assert!(keys(&["level9/*"], r).unwrap_err().contains("`level9/*`"));
    }
    let one = folder.join("level1/19_relu");
    assert_eq!(keys(&[one.to_str().unwrap()], &Root::Embedded).unwrap(), ["1/19"]);
    assert!(keys(&[folder.to_str().unwrap()], &Root::Embedded).unwrap().len() >= 14);
    let glob = format!("{}/level?/1?_*relu", folder.canonicalize().unwrap().display());
    assert_eq!(keys(&[&glob], &Root::Embedded).unwrap(), ["1/19", "2/12"]);
}

#[test]
fn structured_matrices_keep_their_structure_under_every_recipe() {
    for p in all().iter().filter(|p| p.inputs.iter().any(|i| i.structure.is_some())) {
        for (r, _) in targeted_recipes(p) {
            let inputs = p.make_inputs(&r, Extents::Desk).unwrap_or_else(|e| panic!("{}: {r}: {e}", p.key()));
            for i in &p.inputs {
                let Some(structure) = i.structure else { continue };
                let t = &inputs[&i.name];
                let (n, v) = (t.shape[1] as usize, t.to_f64_vec());
                let at = |row: usize, column: usize| v[row * n + column];
                for (row, column) in (0..n).flat_map(|row| (0..row).map(move |column| (row, column))) {
                    let (below, above) = (at(row, column), at(column, row));
                    let holds = match structure {
                        Structure::Upper => below == 0.0,
                        Structure::Lower => above == 0.0,
                        Structure::Symmetric => below == above,
                    };
                    assert!(holds, "{} {}: {r}: ({row}, {column})", p.key(), i.name);
                }
            }
        }
    }
}
