//! ONNX files with large weights, written as they are: field by field.

use std::path::Path;

/// Where the elements of an initializer are.
#[derive(Clone, Copy)]
pub(crate) enum Data {
    /// In `raw_data`.
    Raw,
    /// In `float_data`.
    Typed,
    /// In a file beside the model.
    External,
    /// In a file beside the model, behind so many bytes; zeros, which most systems do not store.
    Far(u64),
}

/// A `float32` initializer of pseudo-random numbers, the same for every name.
pub(crate) struct Init {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) data: Data,
}

/// A node with one output.
pub(crate) struct Node {
    op: &'static str,
    inputs: Vec<&'static str>,
    output: &'static str,
    ints: Vec<(&'static str, u64)>,
}

impl Node {
    pub(crate) fn new(op: &'static str, inputs: &[&'static str], output: &'static str) -> Node {
        Node { op, inputs: inputs.to_vec(), output, ints: Vec::new() }
    }

    pub(crate) fn with(mut self, attribute: &'static str, value: u64) -> Node {
        self.ints.push((attribute, value));
        self
    }
}

/// A model of `float32` tensors.
pub(crate) struct Model {
    pub(crate) inputs: Vec<(String, Vec<u64>)>,
    pub(crate) outputs: Vec<(String, Vec<u64>)>,
    pub(crate) inits: Vec<Init>,
    pub(crate) nodes: Vec<Node>,
}

impl Model {
    /// Writes the model, and `NAME.onnx.data` for external data.
    pub(crate) fn write(&self, path: &Path) {
        let mut graph = Message::default();
        for n in &self.nodes {
            let mut node = Message::default();
            n.inputs.iter().for_each(|i| node.bytes(1, i.as_bytes()));
            node.bytes(2, n.output.as_bytes());
            node.bytes(4, n.op.as_bytes());
            for (name, value) in &n.ints {
                let mut attribute = Message::default();
                attribute.bytes(1, name.as_bytes());
                attribute.int(3, *value);
                attribute.int(20, 2);
                node.bytes(5, &attribute.0);
            }
            graph.bytes(1, &node.0);
        }
        graph.bytes(2, b"main");
        for init in &self.inits {
            graph.bytes(5, &tensor(init, path).0);
        }
        self.inputs.iter().for_each(|(name, shape)| graph.bytes(11, &value_info(name, shape).0));
        self.outputs.iter().for_each(|(name, shape)| graph.bytes(12, &value_info(name, shape).0));
        let mut opset = Message::default();
        opset.int(2, 17);
        let mut model = Message::default();
        model.int(1, 8);
        model.bytes(8, &opset.0);
        model.bytes(7, &graph.0);
        std::fs::write(path, model.0).expect("it can be written");
    }
}

fn tensor(init: &Init, model: &Path) -> Message {
    let mut tensor = Message::default();
    init.shape.iter().for_each(|d| tensor.int(1, *d));
    tensor.int(2, 1);
    tensor.bytes(8, init.name.as_bytes());
    let count: u64 = init.shape.iter().product();
    let file = model.with_extension("onnx.data");
    match init.data {
        Data::Raw => tensor.bytes(9, &elements(count)),
        Data::Typed => tensor.bytes(4, &elements(count)),
        Data::External => {
            std::fs::write(&file, elements(count)).expect("it can be written");
            external(&mut tensor, &file, 0);
        }
        Data::Far(offset) => {
            let file_handle = std::fs::File::create(&file).expect("a file");
            file_handle.set_len(offset + count * 4).expect("a system that has so large files");
            external(&mut tensor, &file, offset);
        }
    }
    tensor
}

fn external(tensor: &mut Message, file: &Path, offset: u64) {
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    for (key, value) in [("location", name), ("offset", offset.to_string())] {
        let mut entry = Message::default();
        entry.bytes(1, key.as_bytes());
        entry.bytes(2, value.as_bytes());
        tensor.bytes(13, &entry.0);
    }
    tensor.int(14, 1);
}

/// Numbers between -1 and 1.
fn elements(count: u64) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).flat_map(|_| next().to_le_bytes()).collect()
}

fn value_info(name: &str, shape: &[u64]) -> Message {
    let mut dims = Message::default();
    for d in shape {
        let mut dim = Message::default();
        dim.int(1, *d);
        dims.bytes(1, &dim.0);
    }
    let mut tensor = Message::default();
    tensor.int(1, 1);
    tensor.bytes(2, &dims.0);
    let mut ty = Message::default();
    ty.bytes(1, &tensor.0);
    let mut info = Message::default();
    info.bytes(1, name.as_bytes());
    info.bytes(2, &ty.0);
    info
}

/// A message of the protobuf wire format.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(&mut self, tag: u64, value: u64) {
        self.varint(tag << 3);
        self.varint(value);
    }

    fn bytes(&mut self, tag: u64, bytes: &[u8]) {
        self.varint(tag << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}
