"""Runs unittest cases and ends with the line that scripts/test reads."""
import sys
import unittest


def run(modules, afterwards=None):
    """Runs all tests of `modules`, or those whose names contain one of the arguments."""
    loader = unittest.TestLoader()
    wanted = sys.argv[1:]
    loader.testNamePatterns = [f"*{name}*" for name in wanted] or None
    suite = unittest.TestSuite(loader.loadTestsFromModule(module) for module in modules)
    if afterwards and not wanted:
        suite.addTest(unittest.FunctionTestCase(afterwards))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2 if wanted else 1).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed", flush=True)
    return 1 if failed or not result.testsRun else 0
