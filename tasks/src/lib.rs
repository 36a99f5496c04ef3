//! Light tasks.
