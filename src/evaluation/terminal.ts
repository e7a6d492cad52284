/** Where a command prints, and how wide that is. */
export interface Terminal {
  /** One text and a line break. */
  readonly print: (text: string) => void;
  /** For progress and problems: as it stands, without a line break. */
  readonly printError: (text: string) => void;
  readonly width: number;
  /** Whether somebody watches the progress. */
  readonly isWatched: boolean;
}

// Of a file or a pipe nobody knows where it is read.
const WIDTH_OF_A_FILE = 120;

/** The terminal of this process. */
export function processTerminal(): Terminal {
  return {
    print: (text) => process.stdout.write(`${text}\n`),
    printError: (text) => process.stderr.write(text),
    width: process.stdout.columns || WIDTH_OF_A_FILE,
    isWatched: process.stderr.isTTY,
  };
}

const BAR = 24;

/** A bar on one line that is drawn over itself, with the time that is left; one plain line where nobody watches. */
export function progress(title: string, total: number, terminal: Terminal): { step(): void; end(): void } {
  const started = performance.now();
  let done = 0;
  let drawn = 0;
  const draw = (): void => {
    const filled = Math.round((BAR * done) / Math.max(1, total));
    const left =
      done === 0 ? "" : `, ${duration(((performance.now() - started) / done) * (total - done))} left`;
    terminal.printError(
      `\r\u001b[2K${title} ${"█".repeat(filled)}${"░".repeat(BAR - filled)} ${done}/${total}${left}`,
    );
    drawn = performance.now();
  };
  if (terminal.isWatched) draw();
  else terminal.printError(`${title}: ${total} cases\n`);
  return {
    step() {
      done += 1;
      if (terminal.isWatched && performance.now() - drawn > 100) draw();
    },
    end() {
      if (!terminal.isWatched) return;
      draw();
      terminal.printError("\n");
    },
  };
}

function duration(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  return seconds < 90 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}
