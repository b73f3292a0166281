mod dump;
mod machine;
