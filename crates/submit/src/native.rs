//! A call of a function whose host part was compiled: it runs in the submission's process, its launches run here.
//!
//! Between `began` and `done` the process asks for launches with the bytes of the memory that they may touch. It is
//! hostile: numbers, names and places are checked, and a launch has no other memory than what it carries.

use std::time::Instant;

use assay_extension::ExtensionError;
use assay_extension::compiled::{Given, HostLaunch, Parameter};
use assay_tensor::DType;
use serde_json::{Value as Json, json};

use crate::host::{Device, Native, Seen};
use crate::server::{Child, Gone};
use crate::session::{MOST_MESSAGES, over};
use crate::wire::{self, Packer};

/// Bytes of one parameter, and parameters of one launch: CUDA's own limit of all of them is 32764 bytes.
const MOST_PARAMETER: usize = 32_764;
const MOST_PARAMETERS: usize = 4096;
/// Bytes of a name, and of a variable of the device.
const MOST_NAME: usize = 4096;
const MOST_SYMBOL: usize = 64 << 10;
/// Names of operations that are kept.
const MOST_OPERATIONS: usize = 4096;

/// The rest of a call that has begun.
///
/// # Errors
/// [`Gone`].
pub(crate) fn call(
    child: &mut Child,
    module: &mut Native,
    device: &Device,
    deadline: Instant,
    seen: &mut Seen,
) -> Result<(), Gone> {
    seen.calls += 1;
    let mut run = device.run(seen);
    let mut call = module.device.begin();
    let go = json!({"type": "go"});
    child.send(&go)?;
    for _ in 0..MOST_MESSAGES {
        let message = child.receive(deadline)?;
        let reply = match message.get("type").and_then(Json::as_str).unwrap_or_default() {
            "done" => {
                let results = list(&message, "results")?;
                let results: Vec<u64> = results.iter().filter_map(Json::as_u64).collect();
                call.finish(&results, &mut run);
                seen.add(run);
                for name in list(&message, "library")?.iter().filter_map(Json::as_str) {
                    if seen.library.len() < MOST_OPERATIONS && name.len() <= MOST_NAME {
                        seen.library.push(name.to_owned());
                    }
                }
                return child.send(&go);
            }
            // Somebody who ignores that all is over hears it again.
            _ if seen.stop.is_some() => json!({"type": "over"}),
            "launch" => {
                let launch = launch(child.exchange.bytes(), &message)?;
                match call.launch(launch, &mut run) {
                    Ok(changed) => {
                        let mut packer = Packer::new(child.exchange.bytes());
                        let places: Result<Vec<Json>, _> = changed
                            .iter()
                            .map(|(i, bytes)| packer.raw(bytes).map(|(at, len)| json!([i, at, len])))
                            .collect();
                        match places {
                            Ok(places) => json!({"type": "launched", "changed": places}),
                            Err(e) => {
                                over(ExtensionError::Exhausted { message: e.to_string(), line: None }, seen)
                            }
                        }
                    }
                    Err(e) => over(e, seen),
                }
            }
            "symbol" => {
                let bytes = hex(&message, "bytes", MOST_SYMBOL)?;
                let (offset, line) = (number(&message, "offset")?, number(&message, "line")?);
                let line = u32::try_from(line).unwrap_or(0);
                call.write_symbol(text(&message, "name")?, offset, bytes, line);
                go.clone()
            }
            "lacking" => {
                let construct = text(&message, "construct")?;
                over(ExtensionError::Unsupported { construct, line: None }, seen)
            }
            other => return Err(Gone::Broken(format!("`{other}` in the middle of a call"))),
        };
        child.send(&reply)?;
    }
    Err(Gone::Broken(format!("more than {MOST_MESSAGES} messages")))
}

fn broken(what: &str) -> Gone {
    Gone::Broken(format!("a launch with a bad `{what}`"))
}

fn list<'m>(message: &'m Json, key: &str) -> Result<&'m Vec<Json>, Gone> {
    message.get(key).and_then(Json::as_array).ok_or_else(|| broken(key))
}

fn number(message: &Json, key: &str) -> Result<u64, Gone> {
    message.get(key).and_then(Json::as_u64).ok_or_else(|| broken(key))
}

fn text(message: &Json, key: &str) -> Result<String, Gone> {
    let text = message.get(key).and_then(Json::as_str).filter(|t| t.len() <= MOST_NAME);
    text.map(str::to_owned).ok_or_else(|| broken(key))
}

fn hex(message: &Json, key: &str, most: usize) -> Result<Vec<u8>, Gone> {
    let digits = message.get(key).and_then(Json::as_str).unwrap_or_default().as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > most {
        return Err(broken(key));
    }
    let digit =
        |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or_else(|| broken(key));
    digits.chunks_exact(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// A launch as a message has it.
fn launch(map: &[u8], message: &Json) -> Result<HostLaunch, Gone> {
    let dims = |key: &str| -> Result<[u64; 3], Gone> {
        let all: Vec<u64> = list(message, key)?.iter().filter_map(Json::as_u64).collect();
        all.try_into().map_err(|_| broken(key))
    };
    let bytes = wire::memory(map, message).map_err(|e| Gone::Broken(e.to_string()))?;
    let described = list(message, "memory")?;
    if described.len() != bytes.len() {
        return Err(broken("memory"));
    }
    let memory = described
        .iter()
        .zip(bytes)
        .map(|(d, bytes)| {
            let id = d.get(0).and_then(Json::as_u64).ok_or_else(|| broken("memory"))?;
            Ok(Given { id, fresh: d.get(1).and_then(Json::as_bool).unwrap_or(false), bytes })
        })
        .collect::<Result<Vec<_>, Gone>>()?;
    let listed = list(message, "parameters")?;
    if listed.len() > MOST_PARAMETERS {
        return Err(broken("parameters"));
    }
    let index = |v: Option<&Json>| -> Result<usize, Gone> {
        let index = v.and_then(Json::as_u64).and_then(|i| usize::try_from(i).ok());
        index.filter(|i| *i < memory.len()).ok_or_else(|| broken("pointer"))
    };
    // An address lies in its memory, or just behind it.
    let offset = |v: Option<&Json>, memory: &Given| -> Result<i64, Gone> {
        let offset = v.and_then(Json::as_i64).filter(|o| *o >= 0);
        let fits = |o: &i64| u64::try_from(*o).is_ok_and(|o| o <= memory.bytes.len() as u64);
        offset.filter(fits).ok_or_else(|| broken("offset"))
    };
    let parameters = listed
        .iter()
        .map(|p| {
            if p.get("nowhere").is_some() {
                return Ok(Parameter::Nowhere { name: text(p, "nowhere")? });
            }
            if p.get("pointer").is_some() {
                let at = index(p.get("pointer"))?;
                let dtype = text(p, "dtype")?.parse::<DType>().map_err(|_| broken("dtype"))?;
                let offset = offset(p.get("offset"), &memory[at])?;
                return Ok(Parameter::Pointer { memory: at, offset, name: text(p, "name")?, dtype });
            }
            let bytes = hex(p, "bytes", MOST_PARAMETER)?;
            let Some(pointers) = p.get("pointers").and_then(Json::as_array).filter(|p| !p.is_empty()) else {
                return Ok(Parameter::Bytes(bytes));
            };
            let pointers = pointers
                .iter()
                .map(|v| {
                    let place = v.get(0).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
                    let place = place.filter(|n| n.checked_add(8).is_some_and(|end| end <= bytes.len()));
                    let at = index(v.get(1))?;
                    Ok((place.ok_or_else(|| broken("pointers"))?, at, offset(v.get(2), &memory[at])?))
                })
                .collect::<Result<Vec<_>, Gone>>()?;
            Ok(Parameter::Record { bytes, pointers, name: text(p, "name")? })
        })
        .collect::<Result<Vec<_>, Gone>>()?;
    Ok(HostLaunch {
        kernel: text(message, "kernel")?,
        grid: dims("grid")?,
        block: dims("block")?,
        shared: number(message, "shared")?,
        large_shared: message.get("large_shared").and_then(Json::as_bool).unwrap_or(false),
        line: u32::try_from(number(message, "line")?).unwrap_or(0),
        memory,
        parameters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Json {
        json!({
            "kernel": "k<float>", "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "line": 7,
            "storages": [[0, 16]], "memory": [[3, true]],
            "parameters": [
                {"pointer": 0, "offset": 4, "name": "x", "dtype": "f32"},
                {"bytes": "0a000000"},
                {"bytes": "00112233445566778899aabbccddeeff", "pointers": [[8, 0, 16]], "name": "p"},
                {"nowhere": "y"},
            ],
        })
    }

    #[test]
    fn a_launch_is_read() {
        let map = vec![1u8; 64];
        let read = launch(&map, &message()).unwrap();
        assert_eq!((read.kernel.as_str(), read.block, read.line), ("k<float>", [32, 1, 1], 7));
        assert_eq!((read.memory[0].id, read.memory[0].bytes.len(), read.memory[0].fresh), (3, 16, true));
        assert!(matches!(&read.parameters[0], Parameter::Pointer { memory: 0, offset: 4, .. }));
        assert!(matches!(&read.parameters[1], Parameter::Bytes(b) if *b == [10, 0, 0, 0]));
        assert!(
            matches!(&read.parameters[2], Parameter::Record { pointers, .. } if *pointers == [(8, 0, 16)])
        );
        assert!(matches!(&read.parameters[3], Parameter::Nowhere { name } if name == "y"));
    }

    #[test]
    fn a_launch_that_names_what_is_not_there_is_refused() {
        let map = vec![1u8; 64];
        for (key, bad) in [
            ("/grid", json!([1, 1])),
            ("/block", json!([1, 1, -1])),
            ("/kernel", json!(7)),
            ("/kernel", json!("k".repeat(5000))),
            ("/storages", json!([[60, 16]])),
            ("/memory", json!([])),
            ("/parameters/0/pointer", json!(1)),
            ("/parameters/0/offset", json!(17)),
            ("/parameters/0/offset", json!(-1)),
            ("/parameters/0/dtype", json!("f33")),
            ("/parameters/1/bytes", json!("0g")),
            ("/parameters/1/bytes", json!("0")),
            ("/parameters/1/bytes", json!("00".repeat(40_000))),
            ("/parameters/2/pointers", json!([[9, 0, 0]])),
            ("/parameters/2/pointers", json!([[u64::MAX, 0, 0]])),
            ("/parameters/2/pointers", json!([[0, 5, 0]])),
            ("/parameters", json!(3)),
            ("/shared", json!(-1)),
        ] {
            let mut m = message();
            *m.pointer_mut(key).unwrap() = bad.clone();
            assert!(launch(&map, &m).is_err(), "{key}: {bad}");
        }
    }
}
