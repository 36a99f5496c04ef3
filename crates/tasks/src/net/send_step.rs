//! How much content leaves at once.

/// Most bytes of content in one send, after which other tasks have their turn: whole pages within
/// one packet of loopback. More of them at once let a reader of many connections run dry and sleep,
/// and each packet wakes it: up to four times the CPU (docs/results/large-files.md).
const STEP_BYTES: usize = 60 << 10;
/// What is left after a step goes with it if it is less than this.
const REST_BYTES: usize = 8 << 10;

/// Returns how many bytes of content the next send has, of those that are left: 60 KiB, or all if
/// they are less than 68 KiB.
pub fn send_step(left: usize) -> usize {
    if left < STEP_BYTES + REST_BYTES { left } else { STEP_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_is_much_larger_than_a_packet_and_no_last_one_is_small() {
        for left in [1, 4_096, 61_440, 65_536, 69_631] {
            assert_eq!(send_step(left), left, "all of {left}");
        }
        for left in [69_632, 262_144, 1 << 20, usize::MAX] {
            assert_eq!(send_step(left), 61_440, "of {left}");
            assert!(left - 61_440 >= 8_192, "of {left}");
        }
    }
}
