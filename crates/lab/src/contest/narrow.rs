//! Parts of a contest: some contenders, some scenarios, or a quick check.

use std::time::Duration;

use super::file::{ContestSpec, GeneratorKind};

/// Time of each run of a quick contest.
const QUICK: Duration = Duration::from_secs(1);
/// Requests to each contender in a check, and its maximum time: too few to be a load.
const CHECKED_REQUESTS: u64 = 10;
const CHECKED_CONNECTIONS: u64 = 2;
const CHECKED: Duration = Duration::from_secs(5);
/// Requests per second in a check of an open model.
const CHECKED_RATE: f64 = 20.0;

impl ContestSpec {
    /// Keeps some contenders only. If the reference is left out, the first one replaces it.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn with_contenders(mut self, names: &[String]) -> Result<Self, String> {
        let all: Vec<&str> = self.contenders.iter().map(|one| one.name.as_str()).collect();
        check_names("contender", names, &all)?;
        self.contenders.retain(|one| names.contains(&one.name));
        let is_left = |name: &String| names.contains(name);
        self.scenarios.retain_mut(|scenario| {
            let has_all = scenario.contenders.is_empty();
            scenario.contenders.retain(is_left);
            scenario.reach.retain(|one| is_left(&one.of) && one.to.as_ref().is_none_or(is_left));
            has_all || !scenario.contenders.is_empty()
        });
        if !names.contains(&self.reference) {
            self.reference =
                self.contenders.first().map(|one| one.name.clone()).unwrap_or_default();
        }
        Ok(self)
    }

    /// Keeps some scenarios only; the name of a sweep selects all its points.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn with_scenarios(mut self, names: &[String]) -> Result<Self, String> {
        let own = self.scenarios.iter().map(|one| one.name.as_str());
        let sweeps = self.scenarios.iter().filter_map(|one| one.sweep.as_deref());
        let mut all: Vec<&str> = own.chain(sweeps).collect();
        all.sort_unstable();
        all.dedup();
        check_names("scenario", names, &all)?;
        self.scenarios.retain(|one| {
            names.contains(&one.name) || one.sweep.as_ref().is_some_and(|of| names.contains(of))
        });
        Ok(self)
    }

    /// Sets the number of rounds of each scenario.
    #[must_use]
    pub fn with_rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self.scenarios.iter_mut().for_each(|scenario| scenario.rounds = rounds);
        self
    }

    /// One round of a second for each scenario: a quick look, not a measurement, which judges no
    /// figure to reach.
    #[must_use]
    pub fn quick(self) -> Self {
        let mut contest = self.with_rounds(1);
        for scenario in &mut contest.scenarios {
            scenario.duration = QUICK;
            scenario.warm_up = scenario.warm_up.min(QUICK / 4);
            // A second is too short to be judged by.
            scenario.reach.clear();
        }
        contest
    }

    /// Ten requests to each contender on two connections: checks the set-up without load.
    #[must_use]
    pub fn checked(self) -> Self {
        let mut contest = self.quick();
        contest.scenarios.truncate(1);
        for scenario in &mut contest.scenarios {
            scenario.connections = scenario.connections.min(CHECKED_CONNECTIONS);
            scenario.contenders.clear();
            scenario.counts.clear();
            if scenario.generator != GeneratorKind::Own {
                // The contenders are checked with the built-in generator, which does not take the
                // arguments of another one.
                scenario.generator = GeneratorKind::Own;
                scenario.arguments.clear();
            }
            scenario.requests = Some(CHECKED_REQUESTS);
            scenario.duration = CHECKED;
            scenario.warm_up = Duration::ZERO;
            scenario.sweep = None;
            "check".clone_into(&mut scenario.name);
            "Ten requests each".clone_into(&mut scenario.title);
            scenario.probes = scenario.probes.min(CHECKED_CONNECTIONS);
            scenario.pipeline = 1;
            scenario.rate = scenario.rate.map(|rate| rate.min(CHECKED_RATE));
        }
        contest
    }
}

fn check_names(what: &str, names: &[String], all: &[&str]) -> Result<(), String> {
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(format!("{name:?} is no {what} of this contest; there are {}", all.join(", ")))
        }
    }
}
