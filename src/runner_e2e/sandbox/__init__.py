"""What keeps an agent from learning which case it is in: policy, walls, launch, probe, exec audit."""
