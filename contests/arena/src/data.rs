//! The data set of the profile json, and what is sent of it.

use std::{fs, io};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Deserialize, Serialize)]
pub struct Rating {
    pub score: i64,
    pub count: i64,
}

#[derive(Deserialize)]
pub struct Item {
    pub id: u64,
    pub name: String,
    pub category: String,
    pub price: i64,
    pub quantity: i64,
    pub active: bool,
    pub tags: Vec<String>,
    pub rating: Rating,
}

#[derive(Serialize)]
pub struct PricedItem<'a> {
    pub id: u64,
    pub name: &'a str,
    pub category: &'a str,
    pub price: i64,
    pub quantity: i64,
    pub active: bool,
    pub tags: &'a [String],
    pub rating: Rating,
    pub total: i64,
}

#[derive(Serialize)]
pub struct Listing<'a> {
    pub items: Vec<PricedItem<'a>>,
    pub count: usize,
}

/// Reads the data set of a folder.
pub fn items(folder: &str) -> io::Result<Vec<Item>> {
    Ok(serde_json::from_slice(&fs::read(format!("{folder}/dataset.json"))?)?)
}

/// The first items, each with its total.
pub fn listing(items: &[Item], count: usize, factor: i64) -> Listing<'_> {
    let priced = |item| priced(item, factor);
    let items: Vec<PricedItem<'_>> = items.iter().take(count).map(priced).collect();
    Listing { count: items.len(), items }
}

fn priced(item: &Item, factor: i64) -> PricedItem<'_> {
    PricedItem {
        id: item.id,
        name: &item.name,
        category: &item.category,
        price: item.price,
        quantity: item.quantity,
        active: item.active,
        tags: &item.tags,
        rating: item.rating,
        total: item.price * item.quantity * factor,
    }
}
