/** The questions whether a call may run, with the call as it will run. */
import * as React from 'react';

import { Decision, IQuestion } from '../api';
import { formatClock } from '../format';
import { ISectionProps, useClock } from '../hooks';
import { Section, SmallButton } from './section';

export function QuestionsSection(props: ISectionProps): JSX.Element | null {
  const { trans, notebook } = props;
  const now = useClock(notebook.questions.length > 0);
  if (notebook.questions.length === 0) {
    return null;
  }
  return (
    <Section title={trans.__('Questions')} count={notebook.questions.length}>
      {notebook.questions.map(question => (
        <Question {...props} key={question.number} question={question} now={now} />
      ))}
    </Section>
  );
}

function Question(props: ISectionProps & { question: IQuestion; now: number }): JSX.Element {
  const { store, trans, kernel, question, now } = props;
  const answer = (decision: Decision) =>
    void store.act(kernel, { action: 'answer', question: question.number, decision });
  // The bridge's sentence ends with how long an answer holds.
  const session = question.scope.endsWith('for an hour')
    ? trans.__('Allow for an hour')
    : trans.__('Allow until the client disconnects');
  return (
    <div className="jp-mcp-question" role="group" aria-label={question.tool}>
      <div className="jp-mcp-text" tabIndex={0}>
        {question.text.split('\n').map((line, index) => (
          <div key={index}>{line}</div>
        ))}
      </div>
      <div className="jp-mcp-buttons">
        <SmallButton kind="accept" label={trans.__('Allow')} onClick={() => answer('once')} />
        <SmallButton
          label={session}
          title={trans.__('This call, and %1', question.scope)}
          onClick={() => answer('session')}
        />
        <SmallButton kind="warn" label={trans.__('Deny')} onClick={() => answer('deny')} />
        <span className="jp-mcp-side">
          {trans.__('%1 left to answer', formatClock(question.ends - now))}
        </span>
      </div>
    </div>
  );
}
