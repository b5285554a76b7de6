//! Parsers on edited texts, as seeded tests with a bound on memory: alone in their process, since memory is counted
//! over all of it. Amounts as in `programs.rs`.

use assay_fuzzing::choices::Choices;
use assay_fuzzing::seeded::{Amount, outcome, random, run};
use assay_fuzzing::{memory, text};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// What a parser may hold at its peak: its tables, and some multiple of the text.
fn bounded(len: usize) -> usize {
    (48 << 20) + 4000 * len
}

#[test]
fn parsers_take_any_text_in_bounded_memory() {
    for target in text::TARGETS {
        let seeds = (target.seeds)();
        for (k, seed) in seeds.iter().enumerate() {
            if let Err(why) = outcome(|| (target.check)(seed)) {
                panic!("{}: seed {k}: {why}", target.name);
            }
        }
        let make = |n: u64| {
            let choices = random(target.name, n).bytes(120);
            text::edited(&mut Choices::new(&choices), &seeds, target.words)
        };
        let done = run(
            target.name,
            Amount::share(target.cases, 40 / text::TARGETS.len() as u32),
            |n| {
                let text = make(n);
                memory::reset_peak();
                let before = memory::now_bytes();
                (target.check)(&text)?;
                let took = memory::peak_bytes().saturating_sub(before);
                if took > bounded(text.len()) {
                    return Err(format!("took {took} bytes of memory for {} bytes of text", text.len()));
                }
                Ok(())
            },
            |n, why| format!("{why}\n{}", String::from_utf8_lossy(&make(n))),
        );
        println!("{}: {done} texts", target.name);
    }
}
