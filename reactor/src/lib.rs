//! The one door to the kernel.
