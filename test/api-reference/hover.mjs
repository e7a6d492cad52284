// What an editor shows on hover must be enough to set an option: a plugin of the generator that warns where
// an option has no default or no example, or where a function or class has no example.
import { Application, ReflectionKind } from "typedoc";

const OPTIONS = /Options$|^(?:GuardedTool|JudgeCallInput|Limits|MonitorView)$/;

const textOf = (comment) =>
  [comment.summary, ...comment.blockTags.map(({ content }) => content)]
    .flat()
    .map(({ text }) => text)
    .join("");
const has = (comment, tag) => comment.blockTags.some((block) => block.tag === tag);
const commentOf = (reflection) => reflection.comment ?? reflection.signatures?.[0]?.comment;

const lack = (reflection, what) => `${reflection.getFriendlyFullName()} has no ${what}`;

function needExample(reflection, logger) {
  const comment = commentOf(reflection);
  // A comment that is missing is reported already.
  if (comment && !has(comment, "@example")) logger.warn(lack(reflection, "@example"));
}

/** @param {Application} app */
export function load(app) {
  app.on(Application.EVENT_VALIDATE_PROJECT, (project) => {
    for (const reflection of project.getReflectionsByKind(ReflectionKind.Function | ReflectionKind.Class))
      needExample(reflection, app.logger);
    const interfaces = project.getReflectionsByKind(ReflectionKind.Interface);
    const allOptions = interfaces.filter(({ name }) => OPTIONS.test(name));
    // A check that finds nothing to check must not pass.
    if (allOptions.length < 10) app.logger.error("most interfaces of options were not found");
    for (const options of allOptions) {
      for (const option of options.children ?? []) {
        needExample(option, app.logger);
        const comment = commentOf(option);
        if (
          comment &&
          option.flags.isOptional &&
          !has(comment, "@default") &&
          !/default/i.test(textOf(comment))
        )
          app.logger.warn(lack(option, "default"));
      }
    }
  });
}
