"""Where executions live: one contract, and the databases that keep it."""
