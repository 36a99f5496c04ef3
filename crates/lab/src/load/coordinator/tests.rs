use std::sync::Arc;

use super::{Coordinator, NextRequest};
use crate::load::StopHandle;
use crate::load::script::Script;
use crate::load::shared::{LoadShared, MeasureWindow};
use crate::plan::LoadPlan;

/// The coordinator of the only thread of a load that is measured from 0 on.
fn coordinator(plan: &LoadPlan) -> Coordinator {
    let script = Script::prepare(plan).expect("the plan is good");
    let shared = Arc::new(LoadShared::new(plan, script, &StopHandle::default(), 1));
    let mut coordinator = Coordinator::new(shared, 0);
    for _ in 0..plan.connections {
        coordinator.add_slot();
    }
    coordinator.times = Some(MeasureWindow { go: 0, from: 0, until: u64::MAX });
    coordinator
}

#[test]
fn requests_that_are_left_are_for_connections_that_had_none() {
    for keep_alive in [true, false] {
        let mut plan = LoadPlan::closed("http://127.0.0.1:1/", 3);
        (plan.keep_alive, plan.end.requests) = (keep_alive, Some(4));
        let mut coordinator = coordinator(&plan);
        let mut sends = |slot: u32| {
            let next = coordinator.next_for(slot, 1, true, None);
            assert_ne!(next, NextRequest::Wait);
            next != NextRequest::Over
        };
        // Its first response comes before the others were asked for theirs.
        assert_eq!([0, 0, 0].map(&mut sends), [true, true, false], "{keep_alive}");
        assert_eq!([1, 1, 2, 2].map(&mut sends), [true, false, true, false], "{keep_alive}");
    }
}
