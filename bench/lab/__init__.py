"""What bench/compare and bench/sweep share: servers, clients, figures and plots."""
