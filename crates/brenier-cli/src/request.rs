//! What is to be explained, and how: the model, its inputs, the methods and what they need besides. Verbs that explain
//! share these flags and what they mean.

mod against;
mod array_change;
mod groups;
mod inputs;
mod methods;
mod model;
mod named;
mod networks;
mod one_model;
mod preprocessing;
mod schema;
mod scoring;
mod surroundings;
mod targets;
mod text;

pub(crate) use self::against::{AgainstArgs, Direction, Parts};
pub(crate) use self::groups::grouping;
pub(crate) use self::inputs::{Sources, expect_fitting, refuse_for_floats, rows};
pub(crate) use self::methods::{MethodArgs, baseline, fixed_rule, with_methods};
pub(crate) use self::model::{Loaded, ModelArgs, file_hash};
pub(crate) use self::named::{Named, NamedArgs};
pub(crate) use self::networks::{Networks, flow_file, in_run};
pub(crate) use self::one_model::{expect_evaluated_model, expect_explained_model};
pub(crate) use self::schema::tell_of_columns;
pub(crate) use self::scoring::ScoringArgs;
pub(crate) use self::surroundings::Surroundings;
pub(crate) use self::targets::{one_target, several_targets, targets};
