//! Texts to kernels that are ready to run, each compiled once in a process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use assay_nvrtc::{Compiler, Image, Options, Unit};
use assay_ops::plain::Plain;
use assay_problems::HostProgram;
use assay_ptx::Module;
use assay_simt::Loaded;

/// A kernel file with its host side, for one element type.
pub(crate) struct Built {
    pub host: HostProgram,
    pub module: Arc<Module>,
    pub loaded: Arc<Loaded>,
    /// From the launcher's name of a kernel to its PTX entry.
    pub entries: BTreeMap<String, String>,
}

/// A file and what `T` stands for.
type Key = (&'static str, &'static str);

/// The kernels built so far.
#[derive(Default)]
pub(crate) struct Cache {
    built: Mutex<HashMap<Key, Result<Arc<Built>, String>>>,
}

impl Cache {
    /// Builds what is not built yet, all in one go, and says what became of each.
    pub fn build(
        &self,
        compiler: &Compiler,
        wanted: &[(&Plain, &'static str)],
    ) -> Vec<Result<Arc<Built>, String>> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        let mut units = Vec::new();
        let mut hosts: Vec<(Key, HostProgram)> = Vec::new();
        for &(plain, element) in wanted {
            let key = (plain.file, element);
            if built.contains_key(&key) || hosts.iter().any(|(k, _)| *k == key) {
                continue;
            }
            let source = plain.source(element);
            match HostProgram::parse(&source) {
                Ok(host) => {
                    units.push(Unit {
                        name: format!("{} of {element}", plain.file),
                        file: plain.file.to_owned(),
                        source: host.device_source(),
                        kernels: host.kernels().to_vec(),
                    });
                    hosts.push((key, host));
                }
                Err(e) => {
                    built.insert(key, Err(e.to_string()));
                }
            }
        }
        let mut modules = Modules::default();
        if !units.is_empty() {
            let images = compiler.compile(&Options::default(), &units);
            for ((key, host), image) in hosts.into_iter().zip(images) {
                let one = match image {
                    Ok(image) => modules.decode(&image).map(|(module, loaded)| {
                        Arc::new(Built { host, module, loaded, entries: image.entries })
                    }),
                    Err(e) => Err(format!("{e}\n{}", e.log)),
                };
                built.insert(key, one);
            }
        }
        wanted
            .iter()
            .map(|(plain, element)| match built.get(&(plain.file, *element)) {
                Some(one) => one.clone(),
                None => Err("was not compiled".to_owned()),
            })
            .collect()
    }
}

/// A decoded image.
type Decoded = (Arc<Module>, Arc<Loaded>);

/// Decodes images, each batch's PTX once.
#[derive(Default)]
struct Modules {
    done: Vec<(Arc<str>, Result<Decoded, String>)>,
}

impl Modules {
    fn decode(&mut self, image: &Image) -> Result<Decoded, String> {
        // Units of a batch share one text.
        if let Some((_, done)) = self.done.iter().find(|(ptx, _)| Arc::ptr_eq(ptx, &image.ptx)) {
            return done.clone();
        }
        let decoded =
            assay_ptx::parse_module(&image.ptx).map_err(|e| format!("PTX: {e}")).and_then(|module| {
                let loaded = Loaded::new(&module).map_err(|e| e.to_string())?;
                Ok((Arc::new(module), Arc::new(loaded)))
            });
        self.done.push((Arc::clone(&image.ptx), decoded.clone()));
        decoded
    }
}
