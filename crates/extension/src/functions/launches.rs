//! Launches, from `kernel<<<…>>>(…)` to the arguments that the device takes.

use super::*;

impl Interp<'_, '_> {
    /// The template arguments written after a kernel's name.
    pub fn kernel_args(
        &mut self,
        k: usize,
        n: &Name,
        scope: &Rc<Scope>,
    ) -> R<Option<Vec<(String, Meaning)>>> {
        let Some(list) = n.args() else { return Ok(None) };
        let template = self.program.kernels[k].template.as_deref();
        let Some(template) = template else {
            return self.rejected(n.at, format!("`{}` is no template", n.last()));
        };
        let mut out = Vec::new();
        for (i, a) in list.iter().enumerate() {
            let m = self.meaning(a, scope)?;
            let is_type = template.get(i).is_none_or(|p| p.is_type);
            if is_type != matches!(m, Meaning::Type(_)) && template.get(i).is_some_and(|p| !p.pack) {
                return self.rejected(n.at, format!("template argument {} of `{}`", i + 1, n.last()));
            }
            out.push((spelling(&m), m));
        }
        Ok(Some(out))
    }

    /// `kernel<<<grid, block, shared, stream>>>(args)`.
    pub fn launch(
        &mut self,
        kernel: &Expr,
        config: &[Expr],
        args: &[Expr],
        scope: &Rc<Scope>,
        at: u32,
    ) -> R<Val> {
        let k = match self.eval(kernel, scope)? {
            Val::Kernel(k) => k,
            other => return self.unsupported(at, format!("a launch of a `{}`", other.ty())),
        };
        if config.len() < 2 || config.len() > 4 {
            return self.rejected(at, format!("a launch takes 2 to 4 settings, found {}", config.len()));
        }
        let grid = self.extent(&config[0], scope)?;
        let block = self.extent(&config[1], scope)?;
        let shared = match config.get(2) {
            None => 0,
            Some(e) => {
                let v = self.eval(e, scope)?;
                match v.as_int() {
                    Some(n) => u64::try_from(n).unwrap_or(u64::MAX),
                    None => return self.rejected(e.at, "shared bytes that are no integer"),
                }
            }
        };
        let values = self.eval_all(args, scope)?;
        self.launch_values(&k, grid, block, shared, values, at)
    }

    pub fn launch_values(
        &mut self,
        k: &KernelName,
        grid: [u64; 3],
        block: [u64; 3],
        shared: u64,
        values: Vec<Val>,
        at: u32,
    ) -> R<Val> {
        let program = self.program;
        let kernel = &program.kernels[k.kernel];
        let least = kernel.params.iter().filter(|p| p.default.is_none()).count();
        if values.len() > kernel.params.len() || values.len() < least {
            return self.rejected(
                at,
                format!("`{}` takes {} arguments, not {}", kernel.name, kernel.params.len(), values.len()),
            );
        }
        // Template parameters: given, deduced, or by default.
        let root = Rc::clone(&self.globals.scope);
        let inner = Scope::child(&root);
        let mut name = kernel.full.clone();
        if let Some(template) = &kernel.template {
            let given = k.args.clone().unwrap_or_default();
            let mut deduced = Vec::new();
            for (p, v) in kernel.params.iter().zip(&values) {
                deduce(&p.ty, v, template, &mut deduced);
            }
            let mut texts: Vec<String> = Vec::new();
            for (i, p) in template.iter().enumerate() {
                let m = match (given.get(i), deduced.iter().find(|(n, _)| *n == p.name), &p.default) {
                    (Some((_, m)), ..) => m.clone(),
                    (None, Some((_, t)), _) => Meaning::Type(t.clone()),
                    (None, None, Some(d)) => self.meaning(d, &inner)?,
                    (None, None, None) => {
                        return self.unsupported(
                            at,
                            format!("`{}` without its template argument `{}`", kernel.name, p.name),
                        );
                    }
                };
                self.declare_meaning(&p.name, &m, &inner);
                texts.push(spelling(&m));
            }
            for (text, _) in given.iter().skip(template.len()) {
                texts.push(text.clone());
            }
            name = format!("{name}<{}>", texts.join(","));
        }
        let mut packed = Vec::with_capacity(values.len());
        for (i, p) in kernel.params.iter().enumerate() {
            let v = match (values.get(i), &p.default) {
                (Some(v), _) => v.clone(),
                (None, Some(d)) => self.eval(d, &inner)?,
                (None, None) => Val::Void,
            };
            let ty = match self.resolve(&p.ty, &inner) {
                Ok(t) => t,
                // A type that only device code knows: the value's own.
                Err(_) => Ty::Auto,
            };
            packed.push(self.pack(&v, &ty, &kernel.name, at)?);
        }
        let line = self.line(at).unwrap_or(0);
        let launch = Launch { kernel: name, grid, block, shared, args: packed, line };
        self.gpu.launch(&launch, self.run)?;
        Ok(Val::Void)
    }

    pub(super) fn extent(&mut self, e: &Expr, scope: &Rc<Scope>) -> R<[u64; 3]> {
        let v = self.eval(e, scope)?;
        match self.convert(&v, &Ty::Dim3, e.at)? {
            Val::Num(Number::Dim3(d)) => Ok(d.map(u64::from)),
            _ => self.rejected(e.at, "an extent that is no `dim3`"),
        }
    }

    /// An argument as the kernel's parameter wants it.
    pub(super) fn pack(&mut self, v: &Val, ty: &Ty, kernel: &str, at: u32) -> R<KernelArg> {
        let v = match (v, ty) {
            (Val::Ptr(_) | Val::Num(_), Ty::Str) => v.clone(),
            _ => self.convert(v, ty, at)?,
        };
        Ok(match (&v, ty) {
            (Val::Num(n), Ty::Half(d, _)) => match crate::convert::encode(*d, n) {
                Some(b) => KernelArg::Bytes(b),
                None => return self.rejected(at, "a kernel argument"),
            },
            (Val::Num(Number::Int(v, s)), _) => {
                KernelArg::Bytes(v.to_le_bytes()[..(s.bits() / 8) as usize].to_vec())
            }
            (Val::Num(Number::Float(v, Scalar::F32)), _) => {
                KernelArg::Bytes((*v as f32).to_le_bytes().to_vec())
            }
            (Val::Num(Number::Float(v, _)), _) => KernelArg::Bytes(v.to_le_bytes().to_vec()),
            (Val::Num(Number::Dim3(d)), _) => {
                KernelArg::Bytes(d.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            (Val::Ptr(p), _) => match &p.target {
                Target::Null => KernelArg::Bytes(vec![0; 8]),
                Target::Storage(s, d) => KernelArg::Pointer(s.clone(), *d, p.offset),
                Target::Cell(_) | Target::Items(_) => {
                    return self.fault(at, format!("`{kernel}` is given a pointer to host memory"));
                }
                Target::Symbol(_) => return self.unsupported(at, "a device variable as an argument"),
            },
            (Val::Accessor(t, _), Ty::Accessor(_, dims, narrow, _)) => {
                if t.sizes.len() as u64 != *dims {
                    return self.raised(
                        at,
                        format!("TensorAccessor expected {dims} dims but tensor has {}", t.sizes.len()),
                    );
                }
                let mut bytes = vec![0u8; 8];
                for n in t.sizes.iter().chain(&t.strides) {
                    if *narrow {
                        bytes.extend_from_slice(&(*n as u32).to_le_bytes());
                    } else {
                        bytes.extend_from_slice(&n.to_le_bytes());
                    }
                }
                let offset = t.offset.saturating_mul(t.dtype.size_bytes());
                let offset = i64::try_from(offset).unwrap_or(i64::MAX);
                KernelArg::Mixed(bytes, vec![(0, t.storage.clone(), t.device, offset)])
            }
            (Val::Record(name, fields), _) => {
                let Some(record) = self.program.records.get(&**name).cloned() else {
                    return self.unsupported(at, format!("the record `{name}` as an argument"));
                };
                let root = Rc::clone(&self.globals.scope);
                let fields = fields.borrow().clone();
                let (mut bytes, mut pointers, mut widest) = (Vec::new(), Vec::new(), 1usize);
                for f in &record.fields {
                    let t = self.resolve(&f.ty, &root)?;
                    let v = fields.get(&f.name).cloned().unwrap_or(Val::Unset);
                    let parts: Vec<Val> = match &v {
                        Val::List(items, _) => items.borrow().clone(),
                        other => vec![other.clone()],
                    };
                    for part in &parts {
                        let (b, inside) = match self.pack(part, &t, kernel, at)? {
                            KernelArg::Bytes(b) => (b, Vec::new()),
                            KernelArg::Pointer(s, d, o) => (vec![0; 8], vec![(0, s, d, o)]),
                            KernelArg::Mixed(b, p) => (b, p),
                        };
                        let align = if matches!(t, Ty::Dim3) { 4 } else { b.len().clamp(1, 8) };
                        widest = widest.max(align);
                        bytes.resize(bytes.len().next_multiple_of(align), 0);
                        pointers.extend(inside.into_iter().map(|(o, s, d, p)| (bytes.len() + o, s, d, p)));
                        bytes.extend_from_slice(&b);
                    }
                }
                bytes.resize(bytes.len().next_multiple_of(widest), 0);
                KernelArg::Mixed(bytes, pointers)
            }
            (Val::Tensor(_), _) => {
                return self.rejected(at, format!("`{kernel}` is given a tensor, not its pointer"));
            }
            (other, _) => {
                let what = format!("a kernel argument of type `{}`", other.ty());
                return self.unsupported(at, what);
            }
        })
    }
}
