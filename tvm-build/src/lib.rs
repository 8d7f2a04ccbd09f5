//! Compiles models to native code in build scripts.
