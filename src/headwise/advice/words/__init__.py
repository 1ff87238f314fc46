"""Every sentence of the advice: findings and answers come in as data, text goes out."""
