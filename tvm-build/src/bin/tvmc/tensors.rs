//! Values of files as arguments and results: arrays of an `.npz` archive, or a folder of serialized ONNX values.

use crate::args::RunArgs;
use std::path::Path;
use tvm_build::host::HostModule;
use tvm_build::import::onnx::{self, Datum, DatumKind, Limits, Ports, encode_datum};
use tvm_build::npy::{Array, Content, Strings};
use tvm_build::npz;
use tvm_build::vm::{Entry, EntryKind, run_dtype};
use tvm_ir::diag::Diag;
use tvm_ir::dtype::{DType, TypeCode};
use tvm_ir::interp::TensorBuf;
use tvm_ir::span::{SourceMap, Span};
use tvm_runtime::host::{HostList, HostTensor, HostValue};

fn error(message: String) -> Diag {
    Diag::error(Span::NONE, message)
}

/// Most nested lists of the names in an archive.
const MAX_DEPTH: usize = 16;

/// Values by name: the arrays of an archive, or `input_0.pb`, … of a folder. What the files of a folder hold is what an ONNX
/// model declares; of other models they are tensors.
pub fn read(args: &RunArgs) -> Result<Vec<(String, Datum)>, Diag> {
    if !args.inputs.is_dir() {
        let arrays = npz::read(&args.inputs).map_err(error)?;
        return Ok(arrays.into_iter().map(|(name, array)| (name, of_content(array))).collect());
    }
    let ports = ports(&args.model.model);
    let kinds = ports.iter().flat_map(|p| &p.inputs).filter(|p| !p.constant).map(|p| p.kind.clone());
    let mut kinds = kinds.chain(std::iter::repeat(DatumKind::Tensor));
    let mut all = Vec::new();
    loop {
        let name = format!("input_{}", all.len());
        let path = args.inputs.join(format!("{name}.pb"));
        if !path.exists() {
            return Ok(all);
        }
        let kind = kinds.next().unwrap_or(DatumKind::Tensor);
        all.push((name, onnx::read_datum(&path, &kind, &Limits::default()).map_err(error)?));
    }
}

/// The inputs and outputs of an ONNX model.
fn ports(model: &Path) -> Option<Ports> {
    let is = model.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"));
    is.then(|| onnx::ports(model, &Limits::default(), &mut SourceMap::default()).ok())?
}

fn of_content(content: Content) -> Datum {
    match content {
        Content::Numbers(a) => Datum::Tensor { dtype: a.dtype, shape: a.shape, data: a.data.into() },
        Content::Strings(s) => Datum::Strings { shape: s.shape, strings: s.strings },
    }
}

/// The arguments of a function among named values: by parameter name, or as `input_0`, `input_1`, … by position; the
/// items of a list as `input_0/0`, `input_0/1`, …. What is missing, superfluous or of the wrong type is an error.
pub fn inputs(host: &mut HostModule, args: &RunArgs, mut given: Vec<(String, Datum)>) -> Result<Vec<HostValue>, Diag> {
    let entry = host.entry(&args.func)?.clone();
    let defaults = defaults(host, args)?;
    let mut inputs = Vec::new();
    for (i, param) in entry.params.iter().enumerate() {
        let positional = format!("input_{i}");
        let named = |name: &str| given.iter().position(|(n, _)| n == name);
        if let Some(at) = named(&param.name).or_else(|| named(&positional)) {
            let (name, datum) = given.swap_remove(at);
            inputs.push(argument(host, &name, datum, &param.kind)?);
            continue;
        }
        if let Some(value) = defaults.get(i).cloned().flatten() {
            inputs.push(value);
            continue;
        }
        if !matches!(param.kind, EntryKind::List) {
            let names: Vec<&str> = given.iter().map(|(n, _)| n.as_str()).collect();
            let message = format!("there is no array for the parameter {} of {}", param.name, entry.name);
            let help = format!("name it {} or {positional}; left are: {}", param.name, names.join(", "));
            return Err(error(message).help(help));
        }
        let mut items = Vec::new();
        for name in [&param.name, &positional] {
            let prefix = format!("{name}/");
            let own = |(n, _): &(String, Datum)| n.starts_with(&prefix);
            let (own, rest): (Vec<_>, Vec<_>) = given.into_iter().partition(own);
            given = rest;
            items.extend(own.into_iter().map(|(n, d)| (n[prefix.len()..].to_owned(), d)));
        }
        let list = list(items, MAX_DEPTH).map_err(|e| error(format!("{}: {e}", param.name)))?;
        inputs.push(argument(host, &param.name, list, &param.kind)?);
    }
    match given.first() {
        Some((name, _)) => Err(error(format!("{} has no parameter for the array {name}", entry.name))),
        None => Ok(inputs),
    }
}

/// By parameter: the values that a model has for those that need not be given.
fn defaults(host: &mut HostModule, args: &RunArgs) -> Result<Vec<Option<HostValue>>, Diag> {
    if args.model.overridable.is_empty() || args.func != "main" {
        return Ok(Vec::new());
    }
    let mut values = host.run_values("main_defaults", &mut [])?.into_iter();
    let is = |name: &String| args.model.overridable.contains(name);
    let ports = ports(&args.model.model);
    let params = ports.iter().flat_map(|p| &p.inputs).filter(|p| !p.constant || is(&p.name));
    Ok(params.map(|p| if p.constant { values.next() } else { None }).collect())
}

/// A list of items named by their places, `0`, `1`, … without gaps, or, in lists of lists, `0/0`, `0/1`, ….
fn list(items: Vec<(String, Datum)>, depth: usize) -> Result<Datum, String> {
    if depth == 0 {
        return Err("lists are nested too deeply".to_owned());
    }
    let mut own: Vec<(usize, Vec<(String, Datum)>)> = Vec::new();
    for (name, datum) in items {
        let (place, rest) = name.split_once('/').unwrap_or((&name, ""));
        let place = place.parse().map_err(|_| format!("'{name}' is not the place of an item"))?;
        let item = (rest.to_owned(), datum);
        match own.iter_mut().find(|(p, _)| *p == place) {
            Some((_, all)) => all.push(item),
            None => own.push((place, vec![item])),
        }
    }
    own.sort_by_key(|(place, _)| *place);
    let mut out = Vec::new();
    for (i, (place, mut all)) in own.into_iter().enumerate() {
        if place != i {
            return Err(format!("there is no item {i}, but an item {place}"));
        }
        out.push(match &all[..] {
            [(rest, _)] if rest.is_empty() => all.remove(0).1,
            _ => list(all, depth - 1)?,
        });
    }
    Ok(Datum::Sequence(out))
}

fn argument(host: &mut HostModule, name: &str, datum: Datum, kind: &EntryKind) -> Result<HostValue, Diag> {
    let named = |e: String| error(format!("{name}: {e}"));
    let wanted = match kind {
        EntryKind::Tensor(wanted, _) => *wanted,
        // An optional that is there may be given as the value itself.
        EntryKind::List if matches!(datum, Datum::Tensor { .. } | Datum::Strings { .. }) => {
            return value(host, &Datum::Sequence(vec![datum]), None).map_err(named);
        }
        _ => None,
    };
    let datum = match (datum, wanted.and_then(|w| w.to_string().parse().ok())) {
        (Datum::Tensor { dtype, shape, data }, Some(wanted)) => {
            let array = Array { dtype, shape, data: data.into() }.into_type(wanted).map_err(named)?;
            of_content(Content::Numbers(array))
        }
        (datum, _) => datum,
    };
    value(host, &datum, wanted).map_err(named)
}

/// A value to pass, of elements of the type `wanted` if that is known; an optional is a list of no or one item. The error is
/// a sentence.
pub fn value(host: &mut HostModule, datum: &Datum, wanted: Option<tvm_runtime::DType>) -> Result<HostValue, String> {
    let (dtype, shape, data) = match datum {
        Datum::Tensor { dtype, shape, data } => (dtype, shape, data),
        Datum::Sequence(items) => {
            let items = items.iter().map(|item| value(host, item, None)).collect::<Result<_, _>>()?;
            return Ok(HostValue::List(HostList::new(items)));
        }
        Datum::Strings { shape, strings } => {
            if let Some(wanted) = wanted.filter(|w| *w != tvm_runtime::DType::TEXT) {
                return Err(format!("the elements are strings, the function takes {wanted}"));
            }
            let texts: Vec<_> = strings.iter().map(|s| host.intern(s)).collect();
            let shape: Vec<i64> = shape.iter().map(|d| i64::try_from(*d).unwrap_or(-1)).collect();
            let tensor = HostTensor::of(&shape, &texts).ok_or("the strings do not fit their shape")?;
            return Ok(HostValue::Tensor(tensor));
        }
        Datum::Optional(item) => {
            let items = item.iter().map(|item| value(host, item, None)).collect::<Result<_, _>>()?;
            return Ok(HostValue::List(HostList::new(items)));
        }
        Datum::Other(kind) => return Err(format!("tensors of {kind} cannot be passed")),
    };
    let dtype = run_dtype(*dtype).ok_or_else(|| format!("{dtype} cannot be passed"))?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != dtype) {
        return Err(format!("the elements are {dtype}, the function takes {wanted}"));
    }
    let extents: Result<Vec<i64>, _> = shape.iter().map(|d| i64::try_from(*d)).collect();
    extents
        .ok()
        .and_then(|extents| HostTensor::new(dtype, &extents, data))
        .map(HostValue::Tensor)
        .ok_or_else(|| format!("{} bytes do not fit the shape {shape:?}", data.len()))
}

/// A result; a list as what `kind` says, else as a sequence. The error is a sentence.
fn result(host: &mut HostModule, value: &HostValue, kind: Option<&DatumKind>) -> Result<Datum, String> {
    match value {
        HostValue::Tensor(t) => {
            let shape = t.shape().iter().map(|d| d.unsigned_abs()).collect();
            if t.dtype() == tvm_runtime::DType::TEXT {
                let strings = host.texts(t).ok_or("a string is not one of the module's")?;
                return Ok(Datum::Strings { shape, strings });
            }
            let dtype = t.dtype().to_string().parse().map_err(|_| format!("{} cannot be written", t.dtype()))?;
            Ok(Datum::Tensor { dtype, shape, data: t.bytes().to_vec().into() })
        }
        HostValue::List(list) => {
            let inner = match kind {
                Some(DatumKind::Sequence(inner) | DatumKind::Optional(inner)) => Some(&**inner),
                _ => None,
            };
            let items = list.items().iter().map(|item| result(host, item, inner));
            let mut items: Vec<Datum> = items.collect::<Result<_, _>>()?;
            Ok(match kind {
                Some(DatumKind::Optional(_)) => Datum::Optional(items.pop().map(Box::new)),
                _ => Datum::Sequence(items),
            })
        }
    }
}

/// Results as `output_0`, `output_1`, …: written to an archive or a folder, else printed.
pub fn write(host: &mut HostModule, args: &RunArgs, entry: &Entry, outputs: &[HostValue]) -> Result<(), Diag> {
    let ports = (args.func == "main").then(|| ports(&args.model.model)).flatten();
    let mut all = Vec::new();
    for (i, (value, out)) in outputs.iter().zip(&entry.outs).enumerate() {
        let kind = ports.as_ref().and_then(|p| p.outputs.get(i)).map(|p| &p.kind);
        all.push(result(host, value, kind).map_err(|e| error(format!("{}: {e}", out.name)))?);
    }
    let folder = args.outputs.as_ref().filter(|p| p.is_dir() || p.to_string_lossy().ends_with(['/', '\\']));
    if let Some(folder) = folder {
        let failed = |e: std::io::Error| error(format!("{} cannot be written: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        for (i, datum) in all.iter().enumerate() {
            let bytes = encode_datum(datum).map_err(|e| error(format!("output_{i}: {e}")))?;
            std::fs::write(folder.join(format!("output_{i}.pb")), bytes).map_err(failed)?;
        }
        return Ok(());
    }
    let mut arrays = Vec::new();
    for (i, datum) in all.into_iter().enumerate() {
        flatten(format!("output_{i}"), datum, &mut arrays);
    }
    match &args.outputs {
        Some(path) => npz::write(path, arrays.iter().map(|(n, a)| (n.as_str(), a))).map_err(error),
        None => {
            arrays.iter().for_each(|(name, array)| println!("{name} {}", preview(array)));
            Ok(())
        }
    }
}

/// A value as arrays: the items of a list as `name/0`, `name/1`, ….
fn flatten(name: String, datum: Datum, out: &mut Vec<(String, Content)>) {
    match datum {
        Datum::Tensor { dtype, shape, data } => {
            out.push((name, Content::Numbers(Array { dtype, shape, data: data.into() })));
        }
        Datum::Strings { shape, strings } => out.push((name, Content::Strings(Strings { shape, strings }))),
        Datum::Sequence(items) => {
            items.into_iter().enumerate().for_each(|(i, item)| flatten(format!("{name}/{i}"), item, out));
        }
        Datum::Optional(item) => item.into_iter().for_each(|item| flatten(format!("{name}/0"), *item, out)),
        Datum::Other(_) => {}
    }
}

/// Type, shape and the first elements.
fn preview(content: &Content) -> String {
    let array = match content {
        Content::Numbers(array) => array,
        Content::Strings(all) => {
            let shown: Vec<String> = all.strings.iter().take(10).map(|s| format!("{s:?}")).collect();
            let more = if all.strings.len() > shown.len() { ", …" } else { "" };
            return format!("string {:?} [{}{more}]", all.shape, shown.join(", "));
        }
    };
    let (dtype, shape) = (array.dtype, array.shape.iter().map(|d| i64::try_from(*d).unwrap_or(i64::MAX)));
    let Ok(values) = TensorBuf::from_bytes(dtype, &shape.collect::<Vec<_>>(), array.data.clone()) else {
        return format!("{dtype} {:?} of {} bytes", array.shape, array.data.len());
    };
    let shown = (0..values.len().min(10)).map(|i| match dtype.code {
        _ if dtype.is_float() && dtype != DType::F64 => (values.get_f64(i) as f32).to_string(),
        _ if dtype.is_float() => values.get_f64(i).to_string(),
        TypeCode::UInt => (values.get_i64(i) as u64).to_string(),
        TypeCode::Complex => "…".to_owned(),
        _ => values.get_i64(i).to_string(),
    });
    let shown: Vec<String> = shown.collect();
    let more = if values.len() > shown.len() { ", …" } else { "" };
    format!("{dtype} {:?} [{}{more}]", array.shape, shown.join(", "))
}
