//! Parts of the path as values: numbers, dates, any type that is parsed from text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use gustnado_http::status::Status;
use thiserror::Error;

use super::Request;

/// Error of a part of the path that is not a value of the expected type. As a response it is 404:
/// nothing has this path. If the route has no such part, which is a mistake in the program, it is
/// 500.
#[derive(Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamError {
    /// The text cannot be converted to a value.
    #[error("{{{name}}} of the path is {found:?}: {because}")]
    Unfit {
        /// The part's name in the route.
        name: String,
        /// Its text, decoded.
        found: String,
        /// The error of the type's `FromStr`.
        because: String,
    },
    /// The route has no part of that name.
    #[error("the route has no part {{{name}}}; add it to its path")]
    Unknown {
        /// The name that was looked for.
        name: String,
    },
}

impl ParamError {
    /// Returns the status of the response to it.
    pub fn status(&self) -> Status {
        match self {
            Self::Unfit { .. } => Status::NOT_FOUND,
            Self::Unknown { .. } => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Parts of the path as values.
impl Request {
    /// Returns the part of the path that a `{name}` of the route matches, as a value.
    ///
    /// ```
    /// use gustnado::{Request, Response, Routes};
    ///
    /// fn user(request: &Request) -> Result<String, gustnado::ParamError> {
    ///     let id: u32 = request.param_as("id")?;
    ///     Ok(format!("user {id}"))
    /// }
    /// let routes = Routes::new().get("/users/{id}", user);
    /// ```
    ///
    /// # Errors
    /// [`ParamError`], which as a response is 404: `/users/x` does not exist.
    pub fn param_as<T: FromStr<Err: fmt::Display>>(&self, name: &str) -> Result<T, ParamError> {
        let Some(raw) = self.parts.param(name) else {
            return Err(ParamError::Unknown { name: name.to_owned() });
        };
        let text: Cow<'_, str> = super::decoded(raw);
        text.parse().map_err(|error: T::Err| ParamError::Unfit {
            name: name.to_owned(),
            found: text.into_owned(),
            because: error.to_string(),
        })
    }
}
