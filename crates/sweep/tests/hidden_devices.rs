//! Devices composed at random from mechanisms and boundaries: the rules learned from a sweep say what the device does at
//! points that were not run, or the answer says that the runs do not decide them.

use assay_sweep::condition::Situation;
use assay_sweep::device::{Device, PathSpec, Which, Wrap};
use assay_sweep::geometry::{Layout, Shape};
use assay_sweep::plan::Plan;
use assay_sweep::point::{Compare, Phase, Point};
use assay_sweep::record::{Outcome, Record};
use assay_sweep::values::Kind;
use assay_sweep::{rules, run};
use assay_tensor::DType;
use assay_tensor::philox::Stream;

const PLAN: &str = r#"
name = "hidden"
title = "small boundaries"
layouts = ["contig", "bT", "aT", "slice"]
small = "2^11"
boundaries = ["2^14", "2^15", "3*2^14"]

[[shape]]
mkn = "16,4,16"
dtypes = ["f32", "f16"]
grid = 3

[[shape]]
mkn = "16,16,4"
dtypes = ["f32"]
grid = 3

[[shape]]
mkn = "4,16,16"
dtypes = ["f32", "f16"]
grid = 3

[[shape]]
mkn = "16,8,8"
dtypes = ["f32"]
grid = 3

[[shape]]
mkn = "16,16,16"
dtypes = ["f32"]
grid = 3
"#;

struct Dice(Stream, u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.1 += 1;
        self.0.below_at(self.1, n)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

fn device(dice: &mut Dice) -> Device {
    let mut paths = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let size =
            dice.pick(&["out.numel", "view.numel", "contiguous.numel", "operand.numel", "transposed.numel"]);
        let sign = dice.pick(&[">", ">="]);
        let at = dice.pick(&["2^14", "2^15", "3*2^14"]);
        let flag = dice.pick(&["", "", "", " and transposed", " and sliced", " and dtype = f16"]);
        let mut path = PathSpec { when: format!("{size} {sign} {at}{flag}"), ..PathSpec::default() };
        match dice.below(6) {
            0 => path.raises = Some("no".into()),
            1 => path.aborts = Some("no".into()),
            2 => path.zeros = true,
            3 => path.ignores_strides = true,
            4 => path.wraps = Some(Wrap { at: at.into(), operands: Which::Contiguous }),
            _ => path.wraps = Some(Wrap { at: at.into(), operands: Which::All }),
        }
        paths.push(path);
    }
    Device {
        name: "hidden".into(),
        aliases: Vec::new(),
        source: "composed at random".into(),
        version: String::new(),
        memory: None,
        paths,
        operations: Vec::new(),
        transfer: None,
    }
}

/// What a sweep runs with random inputs: every point of the search, and bisection between neighbours that differ.
fn sweep(device: &Device, plan: &Plan, boundaries: &[u64]) -> Vec<Record> {
    let mut all = Vec::new();
    for series in plan.series().unwrap() {
        let mut of: Vec<(u64, Outcome)> = Vec::new();
        let mut todo = plan.sizes(&series).unwrap();
        while !todo.is_empty() {
            for size in std::mem::take(&mut todo) {
                let p = plan.point(&series, size, Phase::Search, Kind::Random, 0, Compare::Full).unwrap();
                let r = run::in_process(device, &p, Some(1e-3), boundaries).unwrap();
                of.push((size, r.outcome().unwrap()));
                all.push(r);
            }
            of.sort_unstable();
            todo.extend(
                of.windows(2)
                    .filter(|w| w[0].1 != w[1].1 && w[1].0 - w[0].0 > 1)
                    .map(|w| w[0].0 + (w[1].0 - w[0].0) / 2),
            );
        }
    }
    all
}

#[test]
fn rules_of_twenty_devices_hold_where_the_runs_decide() {
    let plan = Plan::parse(PLAN, "hidden").unwrap();
    let boundaries = plan.boundaries_in(DType::F32).unwrap();
    let (mut right, mut undecided, mut faulty) = (0, 0, 0);
    for seed in 0..20 {
        let mut dice = Dice(Stream::new(seed, 77), 0);
        let device = device(&mut dice);
        let records = sweep(&device, &plan, &boundaries);
        faulty += usize::from(records.iter().any(|r| r.cls != "ok"));
        let learned =
            rules::learn(&records).unwrap_or_else(|e| panic!("device {seed} {:?}: {e}", device.paths));
        let score = rules::apply(&learned.rules, &records).unwrap();
        assert_eq!(
            score.reproduced(),
            score.total(),
            "device {seed}: {:?}\n{:?}",
            device.paths,
            score.misses
        );
        for _ in 0..60 {
            let shapes = [
                (16, 4, 16),
                (16, 16, 4),
                (4, 16, 16),
                (16, 8, 8),
                (8, 16, 8),
                (8, 8, 16),
                (32, 8, 8),
                (16, 16, 16),
            ];
            let (m, k, n) = shapes[dice.below(shapes.len() as u64) as usize];
            let p = Point {
                phase: Phase::Search,
                shape: Shape { m, k, n },
                dtype: if dice.below(4) == 0 { DType::F16 } else { DType::F32 },
                layout: [Layout::Contig, Layout::BT, Layout::AT, Layout::Slice][dice.below(4) as usize],
                kind: Kind::Random,
                batch: 8 + dice.below(300),
                offset: 0,
                seed: 0,
                compare: Compare::Full,
                backward: false,
            };
            let s = Situation { product: p.products()[0], dtype: p.dtype, version: String::new() };
            let observed = run::in_process(&device, &p, Some(1e-3), &boundaries).unwrap().outcome().unwrap();
            let said = rules::decide(&learned.rules, &s).unwrap().by.outcome;
            if said == observed {
                right += 1;
            } else {
                undecided += 1;
                let list: Vec<String> =
                    learned.rules.iter().map(|r| format!("{} -> {}", r.when, r.outcome.name())).collect();
                assert!(
                    !learned.certain(&s),
                    "device {seed} {:#?}\nlearned {list:#?}\n{} at B = {}: {} said, {} observed",
                    device.paths,
                    p.series(),
                    p.batch,
                    said.name(),
                    observed.name()
                );
                // What is open is said.
                assert!(!learned.undecided.is_empty(), "device {seed}: {} at B = {}", p.series(), p.batch);
            }
        }
    }
    assert!(faulty >= 15, "only {faulty} devices misbehave");
    assert!(right > 20 * undecided, "{right} right, {undecided} undecided and wrong");
}
