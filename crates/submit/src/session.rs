//! The conversation about one submission: requests to its process, and what it asks for meanwhile.

use std::time::{Duration, Instant};

use assay_extension::{ExtensionError, Library, Sources, Storage, Value};
use serde_json::{Value as Json, json};

use crate::host::{Built, Device, Host, Made, Native, Seen};
use crate::native;
use crate::server::{Child, Gone};
use crate::toolchain::lend;
use crate::wire::{self, Packer, WireError};

/// Extensions that one submission may build.
const MOST_MODULES: usize = 64;
/// Messages of one forward pass; each costs us as much as the submission.
pub(crate) const MOST_MESSAGES: u64 = 100_000;

/// What a request came to.
#[derive(Debug)]
pub enum Reply {
    /// The answer.
    Answer(Json),
    /// Python raised.
    Raised {
        /// `load`, `make`, `forward`, `result`, `allocate`, `exchange`.
        stage: String,
        /// The class of the exception.
        kind: String,
        /// Its text.
        message: String,
    },
    /// A call ended in a way that no exception can tell: see [`Seen::stop`].
    Stopped,
    /// There is no process any more.
    Gone(Gone),
}

/// A module, and what it was made of, so that it may be made otherwise.
enum Module {
    Interpreted(Box<dyn Built>, Box<Sources>),
    Native(Box<Native>),
}

/// One submission's process, its modules and what it does.
pub struct Session<'h> {
    pub(crate) child: Child,
    host: &'h dyn Host,
    modules: Vec<Module>,
    /// The compiler of host parts that were compiled.
    pub(crate) compiled_by: Option<String>,
    /// Time that building took, which is not the submission's.
    pub(crate) building: Duration,
    /// Is all to be asked again, since an extension will be built otherwise now?
    pub(crate) again: bool,
    /// Extensions that it asked for.
    pub(crate) builds: u64,
    /// CUDA sources in them?
    pub(crate) has_cuda: bool,
    gone: Option<Gone>,
}

/// PyTorch's operations, answered by the submission's process, which is waiting for its call.
struct Operations<'c> {
    child: &'c mut Child,
    deadline: Instant,
    names: Vec<String>,
    gone: Option<Gone>,
}

impl Library for Operations<'_> {
    fn call(
        &mut self,
        name: &str,
        args: &[Value],
        kwargs: &[(String, Value)],
    ) -> Result<Value, ExtensionError> {
        if self.names.len() < 4096 {
            self.names.push(name.to_owned());
        }
        let lost = |message: String| ExtensionError::Exhausted { message, line: None };
        let mut packer = Packer::new(self.child.exchange.bytes());
        let packed =
            args.iter().map(|v| packer.value(v, 0)).collect::<Result<Vec<_>, _>>().and_then(|args| {
                let kwargs = kwargs
                    .iter()
                    .map(|(k, v)| Ok((k.clone(), packer.value(v, 0)?)))
                    .collect::<Result<serde_json::Map<_, _>, WireError>>()?;
                Ok((args, kwargs))
            });
        let (args, kwargs) = packed.map_err(|e| lost(e.to_string()))?;
        let message = json!({
            "type": "op", "name": name, "args": args, "kwargs": kwargs, "storages": packer.places(),
        });
        let answer = self.child.send(&message).and_then(|()| self.child.receive(self.deadline));
        let reply = match answer {
            Ok(reply) => reply,
            Err(gone) => {
                self.gone = Some(gone);
                return Err(lost("the process that runs PyTorch is gone".into()));
            }
        };
        let text = |k: &str| reply.get(k).and_then(Json::as_str).unwrap_or_default().to_owned();
        match reply.get("type").and_then(Json::as_str) {
            Some("op") => {
                let read = wire::storages(self.child.exchange.bytes(), &reply)
                    .and_then(|s| wire::value(reply.get("value").unwrap_or(&Json::Null), &s));
                read.map_err(|e| {
                    self.gone = Some(Gone::Broken(e.to_string()));
                    lost(e.to_string())
                })
            }
            Some("raise") if text("kind") == "AttributeError" => Err(ExtensionError::Unsupported {
                construct: format!("`{name}`: {}", text("message")),
                line: None,
            }),
            Some("raise") => Err(ExtensionError::Raised { message: text("message"), line: None }),
            _ => {
                self.gone = Some(Gone::Broken("no answer to `op`".into()));
                Err(lost("the process that runs PyTorch broke its protocol".into()))
            }
        }
    }
}

impl<'h> Session<'h> {
    /// The session of a child that was just born.
    pub fn new(child: Child, host: &'h dyn Host) -> Session<'h> {
        Session {
            child,
            host,
            modules: Vec::new(),
            compiled_by: None,
            building: Duration::ZERO,
            again: false,
            builds: 0,
            has_cuda: false,
            gone: None,
        }
    }

    /// The child, to end it.
    pub fn into_child(self) -> Child {
        self.child
    }

    /// Why there is no process any more, where there is none.
    pub fn gone(&self) -> Option<&Gone> {
        self.gone.as_ref()
    }

    /// The value of an answer to `forward`.
    ///
    /// # Errors
    /// What is wrong with it: the process is hostile.
    pub fn output(&mut self, answer: &Json) -> Result<Value, String> {
        wire::storages(self.child.exchange.bytes(), answer)
            .and_then(|s| wire::value(answer.get("value").unwrap_or(&Json::Null), &s))
            .map_err(|e| e.to_string())
    }

    /// The compiler of the host parts that were compiled, where one was.
    pub fn compiled_by(&self) -> Option<&str> {
        self.compiled_by.as_deref()
    }

    /// One request; `values` go to its `inputs` or `init`, and `stale` where there is something.
    pub fn ask(
        &mut self,
        mut request: Json,
        values: Option<(&str, &[Value])>,
        device: &Device,
        limit: Duration,
        seen: &mut Seen,
    ) -> Reply {
        if let Some(gone) = &self.gone {
            return Reply::Gone(gone.clone());
        }
        let deadline = Instant::now() + limit;
        let mut packer = Packer::new(self.child.exchange.bytes());
        let packed = values.map_or(Ok(()), |(key, values)| {
            let listed = values.iter().map(|v| packer.value(v, 0)).collect::<Result<Vec<_>, _>>()?;
            request[key] = Json::Array(listed);
            if !device.stale.is_empty() {
                let stale: Vec<Value> = device.stale.iter().cloned().map(Value::Tensor).collect();
                request["stale"] = packer.value(&Value::List(stale), 0)?;
            }
            Ok::<(), WireError>(())
        });
        if let Err(e) = packed {
            seen.stop = Some(ExtensionError::Exhausted { message: e.to_string(), line: None });
            return Reply::Stopped;
        }
        request["storages"] = Json::Array(packer.places());
        match self.converse(&request, device, deadline, seen) {
            Ok(reply) => reply,
            Err(gone) => {
                self.gone = Some(gone.clone());
                Reply::Gone(gone)
            }
        }
    }

    fn converse(
        &mut self,
        request: &Json,
        device: &Device,
        mut deadline: Instant,
        seen: &mut Seen,
    ) -> Result<Reply, Gone> {
        self.child.send(request)?;
        for _ in 0..MOST_MESSAGES {
            let message = self.child.receive(deadline)?;
            let text = |k: &str| message.get(k).and_then(Json::as_str).unwrap_or_default().to_owned();
            match message.get("type").and_then(Json::as_str).unwrap_or_default() {
                "build" => {
                    let began = Instant::now();
                    let reply = self.build(&message, seen);
                    deadline += began.elapsed();
                    self.building += began.elapsed();
                    self.child.send(&reply)?;
                }
                "began" => {
                    let index =
                        message.get("module").and_then(Json::as_u64).and_then(|i| usize::try_from(i).ok());
                    let Some(Module::Native(module)) = index.and_then(|i| self.modules.get_mut(i)) else {
                        return Err(Gone::Broken("a call of no module".into()));
                    };
                    native::call(&mut self.child, module, device, deadline, seen)?;
                }
                "call" => {
                    let (reply, spent) = self.call(&message, device, deadline, seen)?;
                    deadline += spent;
                    self.child.send(&reply)?;
                }
                "raised" => {
                    return Ok(Reply::Raised {
                        stage: text("stage"),
                        kind: text("kind"),
                        message: text("message"),
                    });
                }
                "over" => return Ok(Reply::Stopped),
                _ if seen.stop.is_some() => return Ok(Reply::Stopped),
                _ => return Ok(Reply::Answer(message)),
            }
        }
        Err(Gone::Broken(format!("more than {MOST_MESSAGES} messages")))
    }

    /// Sources into a module.
    fn build(&mut self, message: &Json, seen: &mut Seen) -> Json {
        let list = |k: &str| -> Vec<String> {
            let all = message.get(k).and_then(Json::as_array);
            all.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
        };
        let sources = Sources {
            cpp: list("cpp_sources"),
            cuda: list("cuda_sources"),
            functions: list("functions"),
            cuda_flags: list("cuda_flags"),
        };
        self.builds += 1;
        self.has_cuda |= !sources.cuda.is_empty();
        if self.modules.len() >= MOST_MODULES {
            let message = format!("more than {MOST_MODULES} extensions");
            seen.stop = Some(ExtensionError::Exhausted { message, line: None });
            return json!({"type": "over"});
        }
        match self.host.build(&sources) {
            Ok(Made::Interpreted(module)) => {
                let functions = module.functions();
                self.modules.push(Module::Interpreted(module, Box::new(sources)));
                json!({"type": "built", "module": self.modules.len() - 1, "functions": functions})
            }
            Ok(Made::Native(module)) => match lend(&module.library, self.child.private()) {
                Ok(path) => {
                    let reply = json!({
                        "type": "compiled", "module": self.modules.len(), "path": path, "kernels": module.kernels,
                    });
                    self.compiled_by = Some(module.compiler.clone());
                    self.modules.push(Module::Native(module));
                    reply
                }
                Err(e) => {
                    let message = format!("its private folder takes no library: {e}");
                    over(ExtensionError::Exhausted { message, line: None }, seen)
                }
            },
            Err(e) => over(e, seen),
        }
    }

    /// A call of a function.
    fn call(
        &mut self,
        message: &Json,
        device: &Device,
        deadline: Instant,
        seen: &mut Seen,
    ) -> Result<(Json, Duration), Gone> {
        let broken = |e: WireError| Gone::Broken(e.to_string());
        let storages = wire::storages(self.child.exchange.bytes(), message).map_err(broken)?;
        let args = message
            .get("args")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .map(|v| wire::value(v, &storages))
            .collect::<Result<Vec<_>, _>>()
            .map_err(broken)?;
        let kwargs = message
            .get("kwargs")
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
            .map(|(k, v)| Ok((k.clone(), wire::value(v, &storages)?)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(broken)?;
        let function = message.get("function").and_then(Json::as_str).unwrap_or_default();
        let module = message.get("module").and_then(Json::as_u64).and_then(|i| usize::try_from(i).ok());
        let Some(Module::Interpreted(module, sources)) = module.and_then(|i| self.modules.get_mut(i)) else {
            return Err(Gone::Broken("a call of no module".into()));
        };
        let before: Vec<u64> = storages.iter().map(Storage::version).collect();
        seen.calls += 1;
        let mut operations = Operations { child: &mut self.child, deadline, names: Vec::new(), gone: None };
        let result = module.call(function, args, kwargs, device, seen, &mut operations);
        let Operations { names, gone, .. } = operations;
        seen.library.extend(names);
        if let Some(gone) = gone {
            return Err(gone);
        }
        let value = match result {
            Ok(value) => value,
            Err(e @ ExtensionError::Unsupported { .. }) => {
                let began = Instant::now();
                let e = match self.host.turn(sources, e.clone()) {
                    Ok(()) => {
                        self.again = true;
                        e
                    }
                    Err(e) => e,
                };
                self.building += began.elapsed();
                return Ok((over(e, seen), began.elapsed()));
            }
            Err(e) => return Ok((over(e, seen), Duration::ZERO)),
        };
        let mut packer = Packer::new(self.child.exchange.bytes());
        packer.know(&storages);
        let packed = packer.value(&value, storages.len()).and_then(|value| {
            let mut changed = Vec::new();
            for (i, (storage, version)) in storages.iter().zip(&before).enumerate() {
                if storage.version() != *version {
                    let (at, len) = packer.bytes(storage)?;
                    changed.push(json!([i, at, len]));
                }
            }
            Ok(json!({"type": "returned", "value": value, "changed": changed, "storages": packer.places()}))
        });
        let reply = packed.unwrap_or_else(|e: WireError| {
            over(ExtensionError::Exhausted { message: e.to_string(), line: None }, seen)
        });
        Ok((reply, Duration::ZERO))
    }
}

/// What the submission hears of an error: an exception where a process would have one, else nothing more.
pub(crate) fn over(e: ExtensionError, seen: &mut Seen) -> Json {
    match e {
        ExtensionError::Raised { message, .. } => {
            let kind = if message.contains("incompatible function arguments") {
                "TypeError"
            } else {
                "RuntimeError"
            };
            json!({"type": "raise", "kind": kind, "message": message})
        }
        e => {
            if seen.stop.is_none() {
                seen.stop = Some(e);
            }
            json!({"type": "over"})
        }
    }
}
