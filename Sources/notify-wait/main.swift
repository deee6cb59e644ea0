import NotifyBus
import Glibc
let center = NotifyCenter()
do {
let o = try center.addObserver(forName: CommandLine.arguments[1]) { print("heard", $0); exit(0) }
withExtendedLifetime(o) { while true { sleep(100) } }
} catch { print(error) }
