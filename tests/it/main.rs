//! The one integration test binary: file tests, execution, conformance, structure.

mod tidy;
