//! ONNX.

mod data_type;
mod external;
mod graph;
mod limits;
mod order;
mod places;
mod proto;
mod read;
mod reader;
mod sparse;
mod tensor;
mod wire;

pub use limits::Limits;
