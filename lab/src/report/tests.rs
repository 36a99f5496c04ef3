use crate as lab;

mod specimen;
