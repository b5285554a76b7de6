//! Functions of the CUDA runtime: memory, devices, streams, events.

use super::*;

impl Interp<'_, '_> {
    /// Functions of the CUDA runtime, and of PyTorch around it.
    pub(super) fn runtime_function(&mut self, name: &str, args: &[Val], at: u32) -> R<Option<Val>> {
        Ok(Some(match name {
            "device_of" => match args.first() {
                Some(Val::Tensor(Some(t))) => Val::Device(t.device),
                _ => Val::Nothing,
            },
            "getCurrentCUDAStream" | "getDefaultCUDAStream" | "getStreamFromPool" => Val::Stream,
            "getCurrentDeviceProperties" | "getDeviceProperties" => Val::Opaque("cudaDeviceProp".into()),
            "current_device" | "device_count" => Val::i32(i32::from(name == "device_count")),
            "is_available" => Val::bool(true),
            "cudaGetLastError"
            | "cudaPeekAtLastError"
            | "cudaDeviceSynchronize"
            | "cudaStreamSynchronize"
            | "cudaEventRecord"
            | "cudaEventSynchronize"
            | "cudaEventDestroy"
            | "cudaStreamDestroy"
            | "cudaStreamWaitEvent"
            | "cudaSetDevice"
            | "cudaFuncSetCacheConfig"
            | "cudaDeviceSetCacheConfig"
            | "cudaDeviceSetLimit"
            | "cudaFuncSetSharedMemConfig"
            | "cudaDeviceSetSharedMemConfig"
            | "cudaThreadSynchronize"
            | "cudaDeviceReset"
            | "cudaEventQuery"
            | "cudaStreamQuery"
            | "cudaProfilerStart"
            | "cudaProfilerStop"
            | "cudaStreamAttachMemAsync"
            | "synchronize"
            | "cudaCtxResetPersistingL2Cache"
            | "cudaMemPrefetchAsync"
            | "cudaMemAdvise" => Self::status(),
            "C10_CUDA_KERNEL_LAUNCH_CHECK"
            | "C10_CUDA_CHECK"
            | "AT_CUDA_CHECK"
            | "CUDA_CHECK"
            | "C10_CUDA_CHECK_WARN"
            | "TORCH_CUDA_CHECK" => Val::Void,
            "cudaGetErrorString" | "cudaGetErrorName" => Val::Str("no error".into()),
            "cudaStreamCreate" | "cudaStreamCreateWithFlags" | "cudaStreamCreateWithPriority" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::Stream, at)?;
                }
                Self::status()
            }
            "cudaEventCreate" | "cudaEventCreateWithFlags" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::Event, at)?;
                }
                Self::status()
            }
            "cudaEventElapsedTime" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::Num(Number::Float(0.0, Scalar::F32)), at)?;
                }
                Self::status()
            }
            "cudaGetDevice" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::i32(0), at)?;
                }
                Self::status()
            }
            "cudaGetDeviceCount" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::i32(1), at)?;
                }
                Self::status()
            }
            "cudaGetDeviceProperties" => Self::status(),
            "cudaDeviceGetAttribute" => {
                let [p, Val::Opaque(what), ..] = args else {
                    return self.unsupported(at, "this `cudaDeviceGetAttribute`");
                };
                let field = what.strip_prefix("cudaDevAttr").unwrap_or(what).to_owned();
                let Some(v) = attribute(&field) else {
                    return self.unsupported(at, format!("the attribute `{what}`"));
                };
                self.store(p, Val::int(v), at)?;
                Self::status()
            }
            "cudaOccupancyMaxPotentialBlockSize" => {
                let [grid, block, ..] = args else {
                    return self.rejected(at, format!("`{name}` with these arguments"));
                };
                self.store(grid, Val::i32(132), at)?;
                self.store(block, Val::i32(1024), at)?;
                Self::status()
            }
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor" => {
                if let Some(p) = args.first() {
                    self.store(p, Val::i32(2), at)?;
                }
                Self::status()
            }
            "cudaFuncSetAttribute" => {
                if let (Some(Val::Kernel(k)), Some(Val::Opaque(what))) = (args.first(), args.get(1))
                    && what.contains("MaxDynamicSharedMemorySize")
                {
                    let base = self.program.kernels[k.kernel].name.clone();
                    self.gpu.allow_shared(&base);
                }
                Self::status()
            }
            "cudaFuncGetAttributes" => Self::status(),
            "cudaMalloc" | "cudaMallocAsync" | "cudaMallocManaged" | "cudaMallocHost" => {
                let [p, n, ..] = args else {
                    return self.rejected(at, format!("`{name}` with these arguments"));
                };
                let bytes = self.bytes_of(n, name, at)?;
                let Val::Ptr(Pointer { target: Target::Cell(cell), .. }) = p else {
                    return self.unsupported(at, format!("this `{name}`"));
                };
                let elem = match &*cell.borrow() {
                    Val::Ptr(old) => old.elem.clone(),
                    _ => Ty::Void,
                };
                let storage = self.allocate(bytes, elem.dtype(), at)?;
                let device = if name == "cudaMallocHost" { Device::Cpu } else { Device::Cuda };
                *cell.borrow_mut() = Val::Ptr(Pointer {
                    target: Target::Storage(storage, device),
                    offset: 0,
                    elem,
                    is_const: false,
                });
                Self::status()
            }
            "cudaFree" | "cudaFreeAsync" | "cudaFreeHost" => Self::status(),
            "cudaMemset" | "cudaMemsetAsync" => {
                let [Val::Ptr(p), v, n, ..] = args else {
                    return self.rejected(at, format!("`{name}` with these arguments"));
                };
                let n = self.bytes_of(n, name, at)?;
                let byte = (v.as_int().unwrap_or(0) & 0xff) as u8;
                let Target::Storage(s, _) = &p.target else {
                    return self.fault(at, format!("`{name}` of what is no allocation"));
                };
                self.gpu.forget(s);
                let range = usize::try_from(p.offset).ok().zip(usize::try_from(n).ok());
                let whole = p.offset == 0 && n == s.len_bytes();
                let contents = if whole || s.contents() == Contents::Written {
                    Contents::Written
                } else {
                    Contents::Partial
                };
                let done = range.and_then(|(from, n)| {
                    s.write(contents, |b| b.get_mut(from..from.checked_add(n)?).map(|b| b.fill(byte)))
                });
                if done.is_none() {
                    return self.fault(at, format!("`{name}` of {n} bytes leaves its allocation"));
                }
                Self::status()
            }
            "cudaMemcpy" | "cudaMemcpyAsync" => {
                let [to, from, n, ..] = args else {
                    return self.rejected(at, format!("`{name}` with these arguments"));
                };
                self.copy_memory(to, from, n, at)?;
                Self::status()
            }
            "cudaMemcpyToSymbol" | "cudaMemcpyToSymbolAsync" => {
                let [to, Val::Ptr(from), n, rest @ ..] = args else {
                    return self.unsupported(at, format!("this `{name}`"));
                };
                let Val::Ptr(Pointer { target: Target::Symbol(symbol), .. }) = to else {
                    return self.unsupported(at, format!("this `{name}`"));
                };
                let n = self.bytes_of(n, name, at)?;
                let bytes = self.memory(from, n, at)?;
                let offset =
                    rest.first().and_then(Val::as_int).and_then(|o| u64::try_from(o).ok()).unwrap_or(0);
                let line = self.line(at);
                self.gpu.write_symbol(SymbolWrite { name: symbol.to_string(), offset, bytes, line });
                Self::status()
            }
            "cudaMemcpyFromSymbol" | "cudaGetSymbolAddress" => {
                return self.unsupported(at, format!("`{name}`"));
            }
            "getCurrentCUDABlasHandle" => Val::Opaque("cublasHandle_t".into()),
            "cublasCreate"
            | "cublasDestroy"
            | "cublasSetStream"
            | "cublasSetMathMode"
            | "cublasCreate_v2"
            | "cublasDestroy_v2"
            | "cublasSetPointerMode" => Self::status(),
            "cublasSgemm"
            | "cublasDgemm"
            | "cublasHgemm"
            | "cublasSgemm_v2"
            | "cublasDgemm_v2"
            | "cublasSgemmStridedBatched"
            | "cublasDgemmStridedBatched"
            | "cublasHgemmStridedBatched" => {
                let dtype = match &name[6..7] {
                    "S" => DType::F32,
                    "D" => DType::F64,
                    _ => DType::F16,
                };
                self.gemm(name, args, dtype, at)?;
                Self::status()
            }
            "cublasGemmEx" => {
                let (dtype, plain) = self.gemm_ex(args, at)?;
                self.gemm("cublasGemmEx", &plain, dtype, at)?;
                Self::status()
            }
            "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => {
                return self.unsupported(at, format!("`{name}`"));
            }
            _ => return Ok(None),
        }))
    }

    /// The bytes of a host or device range.
    pub(super) fn memory(&mut self, p: &Pointer, n: u64, at: u32) -> R<Vec<u8>> {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        match &p.target {
            Target::Storage(s, _) => {
                self.gpu.sync();
                let from = usize::try_from(p.offset).ok();
                let part = from.and_then(|f| s.read(|b| b.get(f..f.checked_add(n)?).map(<[u8]>::to_vec)));
                match part {
                    Some(b) => Ok(b),
                    None => self.fault(at, format!("a copy of {n} bytes leaves its allocation")),
                }
            }
            Target::Null => self.fault(at, "a copy from a null pointer"),
            Target::Items(_) | Target::Cell(_) => {
                let (Some(d), Some(size)) = (p.elem.dtype(), p.elem.size_bytes()) else {
                    return self.unsupported(at, format!("a copy of a `{}`", p.elem));
                };
                let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
                let mut out = Vec::new();
                for k in 0..n.div_ceil(size) {
                    let q = self.pointer_add(p, &Val::int(k as i64), false, at)?;
                    let v = self.read_pointer(&q, at)?;
                    let Val::Num(v) = v else { return self.unsupported(at, "a copy of these values") };
                    match crate::convert::encode(d, &v) {
                        Some(b) => out.extend_from_slice(&b),
                        None => return self.unsupported(at, "a copy of these values"),
                    }
                }
                out.truncate(n);
                Ok(out)
            }
            Target::Symbol(_) => self.unsupported(at, "a copy of a device variable"),
        }
    }

    pub fn copy_memory(&mut self, to: &Val, from: &Val, n: &Val, at: u32) -> R<()> {
        let n = self.bytes_of(n, "cudaMemcpy", at)?;
        let (Val::Ptr(to), Val::Ptr(from)) = (to, from) else {
            return self.unsupported(at, format!("a copy from a `{}` to a `{}`", from.ty(), to.ty()));
        };
        let bytes = self.memory(from, n, at)?;
        match &to.target {
            Target::Storage(s, _) => {
                self.gpu.forget(s);
                let whole = to.offset == 0 && n == s.len_bytes();
                let contents = if whole || s.contents() == Contents::Written {
                    Contents::Written
                } else {
                    Contents::Partial
                };
                let done = usize::try_from(to.offset).ok().and_then(|f| {
                    s.write(contents, |b| {
                        b.get_mut(f..f.checked_add(bytes.len())?).map(|b| b.copy_from_slice(&bytes))
                    })
                });
                match done {
                    Some(()) => Ok(()),
                    None => self.fault(at, format!("a copy of {n} bytes leaves its allocation")),
                }
            }
            Target::Null => self.fault(at, "a copy to a null pointer"),
            Target::Items(_) | Target::Cell(_) => {
                let (Some(d), Some(size)) = (to.elem.dtype(), to.elem.size_bytes()) else {
                    return self.unsupported(at, format!("a copy to a `{}`", to.elem));
                };
                let size = usize::try_from(size).unwrap_or(usize::MAX).max(1);
                for (k, part) in bytes.chunks_exact(size).enumerate() {
                    if let Some(v) = crate::convert::decode(d, part) {
                        let q = self.pointer_add(to, &Val::int(k as i64), false, at)?;
                        self.write_pointer(&q, Val::Num(v), at)?;
                    }
                }
                Ok(())
            }
            Target::Symbol(_) => self.unsupported(at, "a copy to a device variable"),
        }
    }
}
