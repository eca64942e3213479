"""From rated records to an invoice: pure rules, the same rows and prices give the same bytes."""
