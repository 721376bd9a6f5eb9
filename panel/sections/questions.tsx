/** What waits for the user's answer: calls, as they will run, and proposed cells. */
import * as React from 'react';

import { formatClock } from '../format';
import { ISectionProps, useClock, useSettled } from '../hooks';
import { Decision, IQuestion } from '../messages';
import { Section, SmallButton } from './section';

export function QuestionsSection(props: ISectionProps): JSX.Element | null {
  const { trans, notebook, actions } = props;
  const now = useClock(notebook.questions.length > 0);
  const proposals = actions.drawProposals();
  const count = notebook.questions.length + proposals.length;
  if (count === 0) {
    return null;
  }
  return (
    <Section title={trans.__('Questions')} count={count}>
      {notebook.questions.map(question => (
        <Question {...props} key={question.number} question={question} now={now} />
      ))}
      {proposals}
    </Section>
  );
}

function Question(props: ISectionProps & { question: IQuestion; now: number }): JSX.Element {
  const { store, trans, kernel, question, now } = props;
  const [isAnswered, setAnswered] = React.useState(false);
  const place = React.useRef<HTMLDivElement>(null);
  const [isSettled, checkSettled] = useSettled(place);
  const answer = (decision: Decision) => {
    // The click may be meant for what was here a moment ago.
    if (!checkSettled()) {
      return;
    }
    setAnswered(true);
    // The focus stays in the panel when the question goes, and where no key answers the next one.
    const next = place.current?.nextElementSibling?.querySelector<HTMLElement>('[tabindex]');
    (next ?? place.current?.closest<HTMLElement>('.jp-mcp-content'))?.focus();
    void store
      .act(kernel, { action: 'answer', question: question.number, decision })
      .then(() => setAnswered(false));
  };
  const isForAnHour = question.session === 'hour';
  return (
    <div className="jp-mcp-question" role="group" aria-label={question.tool} ref={place}>
      <div className="jp-mcp-text" tabIndex={0}>
        {question.text.split('\n').map((line, index) => (
          <div key={index} className={line.startsWith('    ') ? 'jp-mcp-argument' : ''}>
            {line}
          </div>
        ))}
      </div>
      <div className="jp-mcp-buttons">
        <SmallButton
          kind="accept"
          label={trans.__('Allow')}
          disabled={isAnswered}
          waits={!isSettled}
          onClick={() => answer('once')}
        />
        <SmallButton
          label={
            isForAnHour
              ? trans.__('Allow for an hour')
              : trans.__('Allow until the client disconnects')
          }
          title={trans.__('This call, and further calls of this tool by the same client')}
          disabled={isAnswered}
          waits={!isSettled}
          onClick={() => answer('session')}
        />
        <SmallButton
          kind="warn"
          label={trans.__('Deny')}
          disabled={isAnswered}
          waits={!isSettled}
          onClick={() => answer('deny')}
        />
        <span className="jp-mcp-side">
          {trans.__('%1 left to answer', formatClock(question.ends - now))}
        </span>
      </div>
    </div>
  );
}
