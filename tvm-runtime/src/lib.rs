#![no_std]
//! Runtime of ahead-of-time compiled IRModules.
